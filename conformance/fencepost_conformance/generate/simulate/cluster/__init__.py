"""Brokers that host the coordinators of many partitions, with members, commits and transactions, through elections."""

from .plan import ClusterPlan, draw_cluster_plan
from .run import ClusterReport, ClusterSimulation, simulate_cluster

__all__ = ["ClusterPlan", "ClusterReport", "ClusterSimulation", "draw_cluster_plan", "simulate_cluster"]
