# SPDX-License-Identifier: Apache-2.0
"""Tables of word2vec_bench and word2vec_quality, as text or as Markdown."""


def table(head, rows, markdown=False):
    """Of texts; the first column to the left, the others to the right."""
    if markdown:
        rule = [":--", *["--:"] * (len(head) - 1)]
        return "".join("| " + " | ".join(row) + " |\n"
                       for row in [head, rule, *rows])
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    return "".join(
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
        + "\n" for row in [head, *rows])


def span(summary, form="{:.2f}"):
    """The median, with the least and the most."""
    median, least, most = (form.format(summary[key])
                           for key in ("median", "min", "max"))
    return f"{median} ({least}-{most})"
