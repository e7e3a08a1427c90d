"""Detection records: boxes of any number, padded."""
import tensorflow as tf

KEYS = {
    "image/encoded": tf.io.FixedLenFeature((), tf.string),
    "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
    "image/object/bbox/ymin": tf.io.VarLenFeature(tf.float32),
    "image/object/bbox/xmax": tf.io.VarLenFeature(tf.float32),
    "image/object/bbox/ymax": tf.io.VarLenFeature(tf.float32),
    "image/class/label": tf.io.VarLenFeature(tf.int64),
}


def decode(serialized):
    parsed = tf.io.parse_single_example(serialized, KEYS)
    for key in parsed:
        if isinstance(parsed[key], tf.SparseTensor):
            parsed[key] = tf.sparse.to_dense(parsed[key], default_value=0)
    image = tf.io.decode_image(parsed["image/encoded"], channels=3, expand_animations=False)
    image = tf.image.resize(image, [16, 16])
    boxes = tf.stack([parsed[f"image/object/bbox/{side}"] for side in ("ymin", "xmin", "ymax", "xmax")], axis=-1)
    return {"image": image, "boxes": boxes, "classes": parsed["image/class/label"]}


def make():
    files = tf.data.Dataset.list_files("imagenet-*", shuffle=False)
    dataset = files.interleave(tf.data.TFRecordDataset, cycle_length=2)
    return dataset.map(decode).padded_batch(3)
