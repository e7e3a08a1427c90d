"""Data sets as programs about sound, medicine, text and pictures have them, in a module that interpreters import."""

import os
import random

import numpy as np

try:
    import soundfile
except ImportError:
    soundfile = None


class Sounds:
    """A folder for each class, with recordings of several lengths and rates. A piece is cut out at random."""

    def __init__(self, folder, samples=None):
        self.classes = sorted(os.listdir(folder))
        self.paths = [os.path.join(folder, name, file) for name in self.classes for file in sorted(os.listdir(f"{folder}/{name}"))]
        self.samples = samples

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path, start, frames = self.paths[index], 0, -1
        if self.samples is not None:
            start = random.randrange(soundfile.info(path).frames - self.samples)
            frames = self.samples
        wave, rate = soundfile.read(path, frames, start, dtype="float32", always_2d=True)
        return {"wave": wave.T, "rate": rate, "label": self.classes.index(os.path.basename(os.path.dirname(path)))}


def write_sounds(folder, count=12):
    """WAV, FLAC and Ogg, whose lengths and channels differ."""
    draw = np.random.default_rng(5)
    for n in range(count):
        kind, name = (("wav", "dogs"), ("flac", "cats"), ("ogg", "birds"))[n % 3]
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        wave = draw.uniform(-0.5, 0.5, (900 + 37 * n, 1 + n % 2)).astype(np.float32)
        soundfile.write(f"{folder}/{name}/{n:02}.{kind}", wave, (8000, 16000)[n % 2])


def padded_sounds(batch):
    """collate_fn of recordings as they are: one array, and how long each is."""
    import torch

    lengths = [item["wave"].shape[1] for item in batch]
    waves = np.zeros((len(batch), 2, max(lengths)), np.float32)
    for n, item in enumerate(batch):
        waves[n, :, : lengths[n]] = item["wave"]  # one channel becomes two
    return torch.from_numpy(waves), torch.tensor(lengths), torch.tensor([item["label"] for item in batch])


class Scans:
    """Slices of scans that lie in one file, as scanners number their values: int16, with a slope and an intercept of
    each scan, cut to a window. The file is mapped in each process when it is first needed."""

    def __init__(self, path, heads):
        self.path, self.heads = path, heads
        self.slices = [(scan, at) for scan, head in enumerate(heads) for at in range(head["slices"])]
        self._mapped = None

    def __len__(self):
        return len(self.slices)

    def __getitem__(self, index):
        if self._mapped is None:
            self._mapped = np.memmap(self.path, np.dtype(">i2"), "r")
        scan, at = self.slices[index]
        head = self.heads[scan]
        rows, columns = head["shape"]
        begin = head["begin"] + at * rows * columns
        stored = self._mapped[begin : begin + rows * columns].reshape(rows, columns)
        pixels = np.clip(stored * np.float32(head["slope"]) + np.float32(head["intercept"]), -160, 240)
        return {"pixels": pixels[None], "stored": stored.astype(np.int16), "patient": head["patient"],
                "at": np.float64(at * head["thickness"]), "is_last": at + 1 == head["slices"]}  # fmt: skip


def write_scans(path, count=4, shape=(12, 10)):
    draw, heads, begin = np.random.default_rng(2), [], 0
    with open(path, "wb") as file:
        for n in range(count):
            stored = draw.integers(-1024, 3000, (3 + n, *shape)).astype(">i2")
            heads.append({"patient": f"P{n:03}", "slices": 3 + n, "shape": shape, "slope": 1 + n / 2,
                          "intercept": -1024.0, "thickness": 0.625 * (n + 1), "begin": begin})  # fmt: skip
            begin += stored.size
            file.write(stored.tobytes())
    return heads


SENTENCES = [" ".join(["to be or not to be that is the question".split()[(n + k) % 10] for k in range(1 + n * 7 % 13)])
             for n in range(40)]  # fmt: skip


class Sentences:
    """Texts and labels, as a script that tunes a model has them."""

    def __len__(self):
        return len(SENTENCES)

    def __getitem__(self, index):
        return {"text": SENTENCES[index], "label": index % 3}


class Tokenized:
    """A collate_fn of a tokenizer, which pads a batch to its longest text."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, batch):
        import torch

        made = self.tokenizer.encode_batch([item["text"] for item in batch])
        return {
            "input_ids": torch.tensor([each.ids for each in made]),
            "attention_mask": torch.tensor([each.attention_mask for each in made]),
            "labels": torch.tensor([item["label"] for item in batch]),
        }


class ByLength:
    """A batch_sampler of texts that are about equally long, in another order of batches each time."""

    def __init__(self, size, generator):
        self.size, self.generator = size, generator

    def __len__(self):
        return -(-len(SENTENCES) // self.size)

    def __iter__(self):
        import torch

        sorted_ = sorted(range(len(SENTENCES)), key=lambda n: len(SENTENCES[n]))
        batches = [sorted_[at : at + self.size] for at in range(0, len(sorted_), self.size)]
        return iter([batches[n] for n in torch.randperm(len(batches), generator=self.generator).tolist()])


class Augmenting:
    """Draws as albumentations' Compose does: from generators that are its own, not the program's."""

    def __init__(self):
        self.set_random_seed(None)

    def set_random_seed(self, seed):
        self.py_random, self.random_generator = random.Random(seed), np.random.default_rng(seed)

    def __call__(self, image, mask):
        top, left = self.random_generator.integers(0, 5, 2)
        image, mask = (each[top : top + 8, left : left + 8] for each in (image, mask))
        if self.py_random.random() < 0.5:
            image, mask = image[:, ::-1], mask[:, ::-1]
        noise = self.random_generator.integers(0, 256, image.shape, np.uint8)  # never the same twice by chance
        noise[..., 0] = 0  # the mask follows from the first channel
        return {"image": image ^ noise, "mask": mask}


class Segmented:
    """Pictures and their masks, augmented alike."""

    def __init__(self, seeds):
        self.augment, self.seeds = Augmenting(), seeds

    def __len__(self):
        return 24

    def __getitem__(self, index):
        image = (np.arange(12 * 12 * 3).reshape(12, 12, 3) * (index + 1) % 251).astype(np.uint8)
        if self.seeds:
            self.augment.set_random_seed(random.getrandbits(32))
        made = self.augment(image=image, mask=image[..., 0] > 100)
        return made["image"].transpose(2, 0, 1).copy(), made["mask"].copy()
