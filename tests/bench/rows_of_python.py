"""Map-style data sets of the cell `python-rows`, as PyTorch's programs have them."""

import numpy as np

COUNTS = {"items": 100_000, "image": 1_500, "text": 40_000}
BATCHES = {"items": 128, "image": 32, "text": 64}
SIZE = 224


class Items:
    """Small arrays of numbers in memory."""

    def __init__(self):
        self.x = np.random.default_rng(0).random((COUNTS["items"], 16), np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], index


class Images:
    """JPEGs decoded by OpenCV: a random crop with its boxes, resized, perhaps flipped, brighter or darker."""

    def __init__(self):
        import cv2

        rng = np.random.default_rng(0)
        self.files = []
        for _ in range(16):
            pixels = cv2.resize(rng.integers(0, 256, (12, 16, 3), np.uint8), (640, 480))
            self.files.append(cv2.imencode(".jpg", pixels)[1])

    def __len__(self):
        return COUNTS["image"]

    def __getitem__(self, index):
        import cv2

        rng = np.random.default_rng(index)
        image = cv2.imdecode(self.files[index % len(self.files)], cv2.IMREAD_COLOR)
        side = int(rng.integers(200, 480))
        top, left = (int(rng.integers(0, length - side)) for length in image.shape[:2])
        boxes = np.float32([[40, 60, 300, 400], [100, 10, 200, 90]]) - [left, top, left, top]
        boxes = (boxes.clip(0, side) * (SIZE / side)).astype(np.float32)
        image = cv2.resize(image[top : top + side, left : left + side], (SIZE, SIZE))
        if rng.random() < 0.5:
            image = cv2.flip(image, 1)
            boxes[:, [0, 2]] = SIZE - boxes[:, [2, 0]]
        return cv2.convertScaleAbs(image, alpha=float(rng.uniform(0.7, 1.3))), boxes


class Texts:
    """Sentences that collate_fn tokenizes all at once, padded."""

    def __init__(self):
        words = np.random.default_rng(0).integers(0, 5000, (COUNTS["text"], 30))
        self.texts = [" ".join(f"word{n}" for n in row) for row in words.tolist()]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index]


class Tokenize:
    """A collate_fn: byte pairs of Hugging Face, learned from the first texts."""

    def __init__(self):
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        self.tokenizer = Tokenizer(models.BPE())
        self.tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=2000, show_progress=False)
        self.tokenizer.train_from_iterator(Texts().texts[:500], trainer)
        self.tokenizer.enable_padding()

    def __call__(self, texts):
        return np.array([found.ids for found in self.tokenizer.encode_batch(texts)], np.int64)


DATA = {"items": Items, "image": Images, "text": Texts}


def collation(kind):
    return Tokenize() if kind == "text" else None
