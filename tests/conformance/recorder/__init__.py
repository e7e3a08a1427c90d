"""Records cases: runs a program with a real TensorFlow and writes down what it delivered."""
