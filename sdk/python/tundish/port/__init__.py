"""A tf.data program as a pipeline file: python -m tundish.port MODULE:FUNCTION, or tundish port.

The program runs with TensorFlow, once, and tells by its own calls what it builds. A call that is not
known to give exactly the same batches is listed, with the line it stands on and what to write instead.
"""
