"""What `tundish analyze` learns of the click log, with tf.Transform on Beam's direct runner.

    python -m peers.learn_transform FOLDER

tensorflow-transform is not among the harness's packages: it brings half of Google's cloud along. An
empty term is not in its vocabularies.
"""

import json
import os
import resource
import sys
import tempfile
import time

from .clicks import COLUMNS, INTEGERS, TERMS


def main(folder):
    import apache_beam as beam
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tfx_bsl.public import tfxio

    schema = schema_pb2.Schema()
    for name in COLUMNS:
        kind = schema_pb2.BYTES if name in TERMS else schema_pb2.FLOAT
        schema.feature.add(name=name, type=kind)

    def learn(inputs):
        outputs = {}
        for name in TERMS:
            tft.vocabulary(inputs[name], vocab_filename=name, name=name)
        for name in INTEGERS:
            numbers = tf.reshape(tf.sparse.to_dense(inputs[name], default_value=0.0), [-1])
            mean, variance = tft.mean(numbers, name=f"{name}m"), tft.var(numbers, name=f"{name}v")
            outputs[name] = (numbers - mean) / tf.sqrt(variance)
        return outputs

    start = time.monotonic()
    log = tfxio.CsvTFXIO(
        os.path.join(folder, "train.tsv"),
        column_names=COLUMNS,
        delimiter="\t",
        schema=schema,
        telemetry_descriptors=["bench"],
    )
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "out")
        with beam.Pipeline(runner="FnApiRunner") as pipeline, tft_beam.Context(temp_dir=scratch):
            data = pipeline | log.BeamSource()
            learned = (data, log.TensorAdapterConfig()) | tft_beam.AnalyzeDataset(learn)
            _ = learned | tft_beam.WriteTransformFn(out)
        seconds = time.monotonic() - start
        usage = resource.getrusage(resource.RUSAGE_SELF)
        results = tft.TFTransformOutput(out)
        sizes = [len(results.vocabulary_by_name(name)) for name in TERMS]
    line = {
        "version": f"tensorflow_transform {tft.__version__}, apache_beam {beam.__version__}",
        "seconds": round(seconds, 3),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "most_memory_mib": round(usage.ru_maxrss / 1024, 1),
        "vocabulary_sizes": sizes,
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
