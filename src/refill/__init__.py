"""refill: re-read history and deliver it again, reliably and fast."""

__version__ = "0.1.0"
