"""The click log as Parquet: python -m peers.write_parquet TSV PARQUET CODEC"""

import sys

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from .clicks import COLUMNS, INTEGERS, TERMS

ROW_GROUP_ROWS = 1 << 17


def main():
    source, target, codec = sys.argv[1:]
    types = {name: pyarrow.int64() for name in COLUMNS[: 1 + len(INTEGERS)]}
    types |= {name: pyarrow.string() for name in TERMS}
    csv = pyarrow.csv
    table = csv.read_csv(
        source,
        csv.ReadOptions(column_names=COLUMNS),
        csv.ParseOptions(delimiter="\t", quote_char=False),
        csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False),
    )
    pyarrow.parquet.write_table(table, target, compression=codec, row_group_size=ROW_GROUP_ROWS)


if __name__ == "__main__":
    main()
