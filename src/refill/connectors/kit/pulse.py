"""A sign of life between two batches: who sends many small requests beats at each answer."""


class Pulse:
    def __init__(self) -> None:
        self.beats = 0

    def beat(self) -> None:
        self.beats += 1


# one per process: a task of Spark's has a process of its own
PULSE = Pulse()
