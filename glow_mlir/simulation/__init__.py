"""Served models on devices that are not there: a simulator of discrete events for queues, batches and replicas."""
