"""A tf.data program as a pipeline file: python -m tundish.port MODULE:FUNCTION, or tundish port.

The program runs with TensorFlow, once, and tells by its own calls what it builds. What is not known
exactly to give the same batches is listed, with the line it stands on and what to write instead.
"""
