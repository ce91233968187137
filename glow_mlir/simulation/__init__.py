"""Simulate served models on hypothetical devices: discrete events for queues, batches and replicas."""
