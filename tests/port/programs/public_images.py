"""Inputs of pictures, and one of sounds, of the kinds that public repositories train on."""
import tensorflow as tf

SIDE = 16


def records():
    return tf.data.TFRecordDataset(sorted(tf.io.gfile.glob("imagenet-*")))


def parsed(record):
    boxes = {f"image/object/bbox/{side}": tf.io.VarLenFeature(tf.float32) for side in ("ymin", "xmin", "ymax", "xmax")}
    found = tf.io.parse_single_example(
        record,
        {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64), **boxes},
    )
    box = tf.stack([tf.sparse.to_dense(found[name]) for name in boxes], axis=-1)
    return found["image/encoded"], box, tf.cast(found["image/class/label"], tf.int32) - 1


def imagenet_training():
    """A part of the picture that covers enough of a box, decoded alone, and turned half of the time."""

    def crop(encoded, boxes, label):
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(encoded), bounding_boxes=boxes[None], min_object_covered=0.1,
            aspect_ratio_range=(0.75, 1.33), area_range=(0.05, 1.0), max_attempts=10, use_image_if_no_bounding_boxes=True,
        )  # fmt: skip
        (top, left, _), (height, width, _) = tf.unstack(begin), tf.unstack(size)
        image = tf.image.decode_and_crop_jpeg(encoded, tf.stack([top, left, height, width]), channels=3)
        image = tf.image.random_flip_left_right(tf.image.resize(image, [SIDE, SIDE], method="bicubic"))
        return tf.ensure_shape(image, [SIDE, SIDE, 3]) / 255.0, label

    return records().map(parsed).map(crop).batch(8, drop_remainder=True)


def imagenet_evaluation():
    """The middle, whose size follows from the picture's."""

    def crop(encoded, _, label):
        shape = tf.io.extract_jpeg_shape(encoded)
        side = tf.cast(SIDE / (SIDE + 2) * tf.cast(tf.minimum(shape[0], shape[1]), tf.float32), tf.int32)
        window = tf.stack([(shape[0] - side + 1) // 2, (shape[1] - side + 1) // 2, side, side])
        image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
        return tf.image.resize(image, [SIDE, SIDE], method="bicubic"), label

    return records().map(parsed).map(crop).batch(5)


def detection():
    """Scaled within a square, the rest of it filled, boxes in its pixels, a fixed number of them."""

    def scaled(encoded, boxes, label):
        image = tf.image.convert_image_dtype(tf.io.decode_jpeg(encoded, channels=3), tf.float32)
        size = tf.cast(tf.shape(image)[:2], tf.float32)
        scale = 24.0 / tf.reduce_max(size)
        inner = tf.cast(size * scale, tf.int32)
        image = tf.image.pad_to_bounding_box(tf.image.resize(image, inner), 0, 0, 24, 24)
        boxes = tf.clip_by_value(boxes * tf.tile(size * scale, [2]), 0, 23)
        count = tf.shape(boxes)[0]
        boxes = tf.pad(boxes, [[0, 4 - count], [0, 0]], constant_values=-1.0)
        labels = tf.concat([tf.fill([count], label), tf.fill([4 - count], -1)], 0)
        return tf.ensure_shape(image, [24, 24, 3]), {"boxes": tf.ensure_shape(boxes, [4, 4]), "labels": tf.ensure_shape(labels, [4])}

    return records().map(parsed).map(scaled).batch(4)


def two_views():
    """One picture twice, in colours of its own each time."""

    def view(image):
        image = tf.image.random_brightness(image, 0.4)
        image = tf.image.random_saturation(image, 0.6, 1.4)
        image = tf.image.random_hue(image, 0.1)
        drop = tf.random.uniform([]) < 0.2
        image = tf.cond(drop, lambda: tf.tile(tf.image.rgb_to_grayscale(image), [1, 1, 3]), lambda: image)
        return tf.clip_by_value(image, 0.0, 1.0)

    def views(encoded, _, label):
        image = tf.image.convert_image_dtype(tf.io.decode_jpeg(encoded, channels=3), tf.float32)
        image = tf.image.resize(image, [SIDE, SIDE])
        return tf.concat([view(image), view(image)], -1), label

    return records().map(parsed).map(views).batch(6)


def two_halves(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    half = tf.shape(image)[1] // 2
    return tf.cast(image[:, half : 2 * half], tf.float32), tf.cast(image[:, :half], tf.float32)


def translated_training():
    """A drawing and its photograph side by side in one file, cut out of larger ones alike."""

    def jittered(drawing, photograph):
        both = tf.stack([tf.image.resize(each, [20, 20], "nearest") for each in (drawing, photograph)])
        both = tf.image.random_crop(both, [2, SIDE, SIDE, 3])
        if tf.random.uniform(()) > 0.5:
            both = tf.image.flip_left_right(both)
        return both[0] / 127.5 - 1, both[1] / 127.5 - 1

    return tf.data.Dataset.list_files("flowers/roses/*.jpg", shuffle=False).map(two_halves).map(jittered).batch(3)


def translated_test():
    def plain(drawing, photograph):
        return tuple(tf.image.resize(each, [SIDE, SIDE], "nearest") / 127.5 - 1 for each in (drawing, photograph))

    return tf.data.Dataset.list_files("flowers/roses/*.jpg", shuffle=False).map(two_halves).map(plain).batch(3)


def mixed():
    """Two data sets, mixed by a draw of a beta distribution, which two gamma draws make."""

    def plain(encoded, _, label):
        image = tf.image.resize(tf.io.decode_jpeg(encoded, channels=3), [SIDE, SIDE]) / 255.0
        return image, tf.one_hot(label, 10)

    def mix(one, other):
        (images, labels), (others, their) = one, other
        size = tf.shape(images)[0]
        first, second = tf.random.gamma([size], 0.4), tf.random.gamma([size], 0.4)
        share = (first + 1e-6) / (first + second + 2e-6)
        wide = tf.reshape(share, [size, 1, 1, 1])
        return images * wide + others * (1 - wide), labels * share[:, None] + their * (1 - share[:, None])

    one = records().map(parsed).map(plain).batch(8)
    other = records().map(parsed).map(plain).skip(4).batch(8, drop_remainder=True)
    return tf.data.Dataset.zip((one.take(2), other)).map(mix)


def enlarged():
    """A part of a picture, and the same in small, in the channel of brightness alone."""

    def pair(path):
        image = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), [24, 24]) / 255.0
        part = tf.image.random_crop(image, [12, 12, 3])
        bright = tf.image.rgb_to_yuv(part)[..., :1]
        return tf.image.resize(bright, [4, 4], method="area"), bright

    return tf.data.Dataset.list_files("flowers/tulips/*.jpg", shuffle=False).map(pair).batch(3)


def handwriting():
    """A line of text kept in shape, filled up evenly, turned, and its characters as numbers."""
    characters = tf.keras.layers.StringLookup(vocabulary=list("2345bcde"), mask_token=None)

    def sample(path):
        image = tf.image.resize(tf.io.decode_png(tf.io.read_file(path), 1), (8, 48), preserve_aspect_ratio=True)
        height, width = 8 - tf.shape(image)[0], 48 - tf.shape(image)[1]
        paddings = [[height // 2, height - height // 2], [width // 2, width - width // 2], [0, 0]]
        image = tf.transpose(tf.pad(image, paddings), [1, 0, 2])
        label = characters(tf.strings.unicode_split(tf.strings.split(path, "/")[-1], "UTF-8")[:5])
        label = tf.pad(label, [[0, 7 - tf.shape(label)[0]]], constant_values=99)
        return {"image": tf.ensure_shape(tf.image.flip_left_right(image) / 255.0, [48, 8, 1]), "label": tf.ensure_shape(label, [7])}

    return tf.data.Dataset.list_files("captcha/*.png", shuffle=False).map(sample).batch(4)


def speech():
    """Spectra whose mean and deviation over time are taken away."""

    def features(wave):
        spectrum = tf.abs(tf.signal.stft(wave, frame_length=64, frame_step=32, fft_length=64)) ** 0.5
        mean = tf.reduce_mean(spectrum, 1, keepdims=True)
        return (spectrum - mean) / (tf.math.reduce_std(spectrum, 1, keepdims=True) + 1e-10)

    waves = tf.stack([tf.sin(tf.range(400.0) * (0.1 + 0.07 * n)) * (n + 1) for n in range(6)])
    return tf.data.Dataset.from_tensor_slices(waves).map(features).batch(4)


def all_of_them():
    found = (
        imagenet_training, imagenet_evaluation, detection, two_views, translated_training, translated_test, mixed, enlarged,
        handwriting, speech,
    )  # fmt: skip
    return {each.__name__: each() for each in found}
