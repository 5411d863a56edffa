"""Benchmarks: refill beside what people use today, all in one run on one machine."""
