"""Training on a GPU, in whose memory batches are before the program asks for them.

    tundish-launch FILE --replicas 1 -- python train_gpu.py

FILE has the columns x (float32, two of them) and label. Without a GPU a sentence says so, and the CPU
trains.
"""

import torch

import tundish
from tundish.torch import DataLoader


def main() -> None:
    device = find_device()
    torch.manual_seed(1)
    model = torch.nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train = open_loader(device)
    while not train.reader.ended:
        losses = []
        for x, label in train:  # tensors on the device: torch's stream waits for them, not this loop
            loss = torch.nn.functional.mse_loss(model(x)[:, 0], label.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        if losses:
            print(f"{train.reader.device or 'cpu'} loss {torch.stack(losses).mean().item():.4f}")


def find_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    print("training on the CPU: torch finds no GPU")
    return "cpu"


def open_loader(device: str) -> DataLoader:
    """On the device; or, if Tundish cannot reach it, with copies that torch makes when they are needed."""
    columns = ("x", "label")
    try:
        return DataLoader(tundish.open(device=device), columns=columns)
    except tundish.SystemFault as fault:
        print(f"reading to the CPU: {fault}")

        def moved(made: dict) -> list:
            return [made[name].to(device) for name in columns]

        return DataLoader(columns=columns, collate=moved)


if __name__ == "__main__":
    main()
