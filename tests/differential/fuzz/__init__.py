"""Random programs of torch calls, lowered and compared with eager PyTorch; what differs is shrunk to a few lines.

    cd tests/differential && python -m fuzz --seed 0 --count 1000
"""
