"""``fencepost`` for spark-submit: a Python file, followed by the command and its options.

spark-submit --master yarn submit.py conform --engine spark --rows hdfs://… --traces 1000000
"""

from fencepost_conformance.cli import main

if __name__ == "__main__":
    main()
