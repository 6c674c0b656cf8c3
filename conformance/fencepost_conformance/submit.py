"""``fencepost`` as spark-submit takes it: a Python file, and the command's own words after it.

spark-submit --master yarn submit.py conform --engine spark --rows hdfs://… --traces 1000000
"""

from fencepost_conformance.cli import main

if __name__ == "__main__":
    main()
