"""The coordinator of transactions: ids and epochs of producers, which partitions a transaction is in, how it ends."""
