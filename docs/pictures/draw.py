#!/usr/bin/env python3
"""Draws the pictures of the pages: writes mark.svg, bounds.svg, failover.svg, id.svg and serial.svg next to this script, or
into the directory that is given as argument.

A picture is 520 pixels wide, so that its text can be read on a phone. It has its own background and follows the colour scheme of the
reader.
"""

import sys
from html import escape
from pathlib import Path

WIDTH = 520
# The name of a colour, and its value in light and in dark mode.
COLOURS = {
    "paper": ("#ffffff", "#16181d"),
    "ink": ("#1f2328", "#e6e8eb"),
    "grey": ("#59636e", "#9aa4af"),
    "line": ("#c4cad1", "#474e57"),
    "box": ("#f3f5f7", "#22262d"),
    "blue": ("#0b5cad", "#6cb2ff"),
    "bluebox": ("#dcebfa", "#173452"),
    "orange": ("#b3500b", "#f4a259"),
    "orangebox": ("#fbe8d8", "#4a2c12"),
    "green": ("#1a7040", "#6fd08c"),
    "greenbox": ("#ddf2e3", "#173a24"),
    "red": ("#b42323", "#ff8f87"),
}


class Picture:
    """An SVG file with a title, a description and a background."""

    def __init__(self, title, description, height):
        self.title, self.description, self.height, self.parts = title, description, height, []

    def add(self, element, content=None, **attributes):
        """Adds an element. An underscore in the name of an attribute stands for a hyphen."""
        listed = "".join(f' {name.rstrip("_").replace("_", "-")}="{number(value)}"' for name, value in attributes.items())
        self.parts.append(f"<{element}{listed}/>" if content is None else f"<{element}{listed}>{escape(content, quote=False)}</{element}>")

    def text(self, x, y, content, style="", anchor="start"):
        """Adds a line of text. The style is a list of names: colours, "b" for bold, "m" for code, "s" for small, "h" for a heading."""
        self.add("text", content, x=x, y=y, **({"class": style} if style else {}), **({"text_anchor": anchor} if anchor != "start" else {}))

    def lines(self, x, y, contents, style="", anchor="start", step=19):
        """Adds lines of text, the first at y."""
        for row, content in enumerate(contents):
            self.text(x, y + row * step, content, style, anchor)

    def box(self, x, y, width, height, fill="box", edge="line"):
        """Adds a rectangle with round corners."""
        self.add("rect", x=x, y=y, width=width, height=height, rx=6, class_=f"f-{fill} l-{edge}")

    def path(self, points, colour, *styles):
        """Adds a line through points. The styles: "thick", "dashed", "arrow"."""
        steps = " ".join(f"{'L' if row else 'M'}{number(x)} {number(y)}" for row, (x, y) in enumerate(points))
        self.add("path", d=steps, class_=" ".join([f"l-{colour}", *(style for style in styles if style != "arrow")]))
        if "arrow" in styles:
            self.head(points[-2], points[-1], colour)

    def head(self, start, end, colour):
        """Adds the head of an arrow."""
        (x, y), (dx, dy) = end, (end[0] - start[0], end[1] - start[1])
        length = (dx * dx + dy * dy) ** 0.5
        dx, dy = dx / length, dy / length
        corners = [(x, y), (x - 9 * dx - 5 * dy, y - 9 * dy + 5 * dx), (x - 9 * dx + 5 * dy, y - 9 * dy - 5 * dx)]
        self.add("path", d=" ".join(f"{'L' if row else 'M'}{number(a)} {number(b)}" for row, (a, b) in enumerate(corners)) + "Z",
                 class_=f"f-{colour}")

    def dot(self, x, y, colour, radius=4):
        """Adds a dot."""
        self.add("circle", cx=x, cy=y, r=radius, class_=f"f-{colour}")

    def svg(self):
        """The file."""
        def colours(mode):
            return [f".f-{name}{{fill:{value[mode]}}}.l-{name}{{stroke:{value[mode]}}}text.{name}{{fill:{value[mode]}}}"
                    for name, value in COLOURS.items()]
        light, dark = colours(0), colours(1)
        style = [
            "text{font-family:sans-serif;font-size:15px}",
            ".s{font-size:14px}.b{font-weight:bold}.h{font-weight:bold;font-size:17px}",
            ".m{font-family:monospace;font-size:14px}",
            "path{fill:none;stroke-width:1.5}.thick{stroke-width:3.5}.dashed{stroke-dasharray:5 4}",
            f"text{{fill:{COLOURS['ink'][0]}}}", *light,
            f"@media (prefers-color-scheme:dark){{text{{fill:{COLOURS['ink'][1]}}}", *dark, "}",
        ]
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" viewBox="0 0 {WIDTH} {self.height}"'
            ' role="img" aria-labelledby="title description">',
            f'<title id="title">{escape(self.title)}</title>', f'<desc id="description">{escape(self.description)}</desc>',
            "<style>", *style, "</style>",
            f'<rect class="f-paper" width="{WIDTH}" height="{self.height}" rx="8"/>', *self.parts, "</svg>", "",
        ])


def number(value):
    """A coordinate without superfluous digits, or a text as it is."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, (int, float)) else escape(str(value))


class Plot:
    """A coordinate system in a picture: ten units of clock time to the right, ten units of ID time upwards."""

    def __init__(self, picture, top, height=190):
        self.picture, self.left, self.width, self.bottom, self.height = picture, 34, 462, top + height, height

    def at(self, x, y):
        """The coordinates in the picture."""
        return self.left + self.width * x / 10, self.bottom - self.height * y / 11.5

    def draw(self, points, colour, *styles):
        """Adds a line."""
        self.picture.path([self.at(x, y) for x, y in points], colour, *styles)

    def clock(self, points):
        """Adds a part of the clock, a little lower than it is, so that IDs that follow it do not hide it."""
        self.picture.path([(x, y + 4) for x, y in (self.at(*point) for point in points)], "green", "dashed")

    def axes(self):
        """Adds the axes and their names."""
        self.picture.path([(self.left, self.bottom - self.height), (self.left, self.bottom), (self.left + self.width, self.bottom)], "line")
        self.picture.add("text", "time of IDs", class_="s grey", x=0, y=0, text_anchor="middle",
                         transform=f"translate({self.left - 10} {number(self.bottom - self.height / 2)}) rotate(-90)")

    def steps(self, marks, end):
        """Adds the mark, which is raised at each (time, mark) and ends at a time."""
        points = []
        for (time, mark), (until, _) in zip(marks, marks[1:] + [(end, 0)]):
            points += [(time, mark), (until, mark)]
        self.draw(points, "orange")

    def span(self, x, low, high, colour):
        """Adds an arrow in both directions."""
        self.draw([(x, low), (x, high)], colour)
        below, above = self.at(x, low), self.at(x, high)
        self.picture.head(above, below, colour)
        self.picture.head(below, above, colour)


def raised(start, time_of, end):
    """The marks of a server that begins at a time: each is a window of two units above the ID at which half of the last was used."""
    marks, time = [(start, time_of(start) + 2)], start
    while time < end:
        time += 0.01
        if time_of(time) >= marks[-1][1] - 1 and time < end:
            marks.append((time, time_of(time) + 2))
    return marks


def mark():
    """The mark and its window beside the clock."""
    picture = Picture("The high-water mark and its window beside the clock", "Three plots of the time of IDs against the clock. In normal "
                      "operation, IDs follow the clock, and the mark is up to one window above them. After a crash, IDs begin at the mark. "
                      "After the clock was set back, IDs are ahead of it, and their lead shrinks by a tenth of the time that passes.", 876)
    for x, colour, style, name in ((24, "blue", "thick", "IDs"), (108, "green", "dashed", "clock"), (208, "orange", "", "high-water mark")):
        picture.path([(x, 24), (x + 28, 24)], colour, *([style] if style else []))
        picture.text(x + 35, 29, name, colour)
    tops = [92, 372, 652]
    plots = [Plot(picture, top) for top in tops]
    titles = [
        ("1. Normal operation", "IDs follow the clock and stay below the mark."),
        ("2. Crash", "IDs begin at the mark, or at the clock if it is later."),
        ("3. The clock is set back by 15 s", "IDs are ahead of the clock by 15 s, and 30 s later by 12 s."),
    ]
    for plot, top, (title, text) in zip(plots, tops, titles):
        picture.text(24, top - 30, title, "h")
        picture.text(24, top - 8, text)
        plot.axes()
        picture.text(plot.left + plot.width, plot.bottom + 17, "time that passes", "s grey", "end")

    plot = plots[0]
    plot.draw([(0, 0), (9.5, 9.5)], "blue", "thick")
    plot.clock([(0, 0), (9.5, 9.5)])
    plot.steps(raised(0, lambda time: time, 9.5), 9.5)
    plot.span(4, 4, 6, "grey")
    picture.text(*plot.at(3.8, 6.9), "window", "s grey", "end")
    x, y = plot.at(10, 2.6)
    picture.lines(x, y, ["The mark is raised when", "half of the window is used."], "s grey", "end")

    plot = plots[1]
    plot.clock([(0, 0), (9.5, 9.5)])
    plot.draw([(0, 0), (3.7, 3.7)], "blue", "thick")
    plot.steps(raised(0, lambda time: time, 3.7), 4.4)
    after = lambda time: 5 + 0.9 * (time - 4.4)
    plot.draw([(4.4, 5), (9.5, after(9.5))], "blue", "thick")
    plot.steps(raised(4.4, after, 9.5), 9.5)
    plot.draw([(3.7, 0), (3.7, 3.7)], "red", "dashed")
    plot.draw([(4.4, 0), (4.4, 5)], "red", "dashed")
    x, y = plot.at(3.6, 0.5)
    picture.text(x, y, "crash", "s red", "end")
    x, y = plot.at(4.5, 0.5)
    picture.text(x, y, "restart", "s red")
    picture.dot(*plot.at(4.4, 5), "blue", 5)
    x, y = plot.at(10, 3.4)
    picture.lines(x, y, ["The rest of the window", "is skipped."], "s grey", "end")

    plot = plots[2]
    after = lambda time: time if time < 3.5 else 3.5 + 0.9 * (time - 3.5)
    plot.clock([(0, 0), (3.5, 3.5)])
    plot.clock([(3.5, 0.5), (9.5, 6.5)])
    plot.draw([(0, 0), (3.5, 3.5), (9.5, after(9.5))], "blue", "thick")
    plot.steps(raised(0, after, 9.5), 9.5)
    plot.span(3.5, 0.5, 3.5, "grey")
    plot.span(9.5, 6.5, after(9.5), "grey")
    picture.text(*plot.at(3.7, 2.2), "15 s", "s grey")
    picture.text(*plot.at(9.9, 4.2), "12 s", "s grey", "end")
    return picture


def bounds():
    """The four bounds of an instant inside a tick."""
    picture = Picture("The bounds of an instant on the line of IDs", "The instant 12:00:00.0014 is inside the tick 12:00:00.001. "
                      "snowflake_min_id is the first ID of this tick. snowflake_max_id and snowflake_last_id_before are its last ID. "
                      "snowflake_first_id_from is the first ID of the next tick.", 432)
    picture.text(230, 30, "at = 2024-03-10 12:00:00.0014 UTC", "b", "middle")
    picture.path([(230, 40), (230, 76)], "red", "arrow")
    for x, width, fill, name in ((18, 96, "box", ".000"), (118, 284, "bluebox", "tick 12:00:00.001"), (406, 96, "box", ".002")):
        picture.box(x, 80, width, 44, fill)
        picture.text(x + width / 2, 107, name, "grey" if fill == "box" else "b blue", "middle")
    first, last, following = 126, 394, 414
    for x, bottom, colour in ((first, 193, "blue"), (last, 289, "blue"), (following, 365, "orange")):
        picture.dot(x, 116, colour, 4.5)
        picture.path([(x, 116), (x, bottom)], colour)
    picture.text(first + 10, 150, "the first ID of the tick", "s grey")
    picture.lines(first + 10, 170, ["snowflake_min_id(at)", "1766796140348440576"], "m blue", step=20)
    picture.text(last - 10, 226, "the last ID of the tick", "s grey", "end")
    picture.lines(last - 10, 246, ["snowflake_max_id(at)", "snowflake_last_id_before(at)", "1766796140352634879"], "m blue", "end", step=20)
    picture.text(following - 10, 322, "the first ID of the next tick", "s grey", "end")
    picture.lines(following - 10, 342, ["snowflake_first_id_from(at)", "1766796140352634880"], "m orange", "end", step=20)
    picture.lines(18, 396, ["If at is the beginning of a tick, the first ID from at is the first ID",
                            "of this tick, and the last ID before at is the ID below it."], "s grey")
    return picture


def failover():
    """A failover with a worker ID for each server."""
    picture = Picture("Failover with two worker IDs", "db1 with worker ID 1 is the primary, and db2 with worker ID 2 its standby. db1 is "
                      "cut off and db2 is promoted. db1 can still issue IDs, which have worker ID 1; the IDs of db2 have worker ID 2. The "
                      "mark of db1 is carried over to db2, and db1 becomes the standby of db2.", 640)
    left, right, width = 18, 302, 200

    def server(x, y, height, role, lines, worker=None, issues=True):
        fill, colour = {None: ("box", "grey"), 1: ("bluebox", "blue"), 2: ("orangebox", "orange")}[worker]
        picture.box(x, y, width, height, fill, colour)
        picture.text(x + 12, y + 24, role, f"b {colour}")
        picture.lines(x + 12, y + 46, lines, "s")
        if worker and issues:
            for place in range(4):
                picture.box(x + 12 + place * 28, y + height - 34, 22, 24, "paper", colour)
                picture.text(x + 23 + place * 28, y + height - 17, str(worker), f"b {colour}", "middle")
            picture.text(x + 128, y + height - 17, "…", colour)

    picture.text(left + width / 2, 32, "db1, worker ID 1", "h", "middle")
    picture.text(right + width / 2, 32, "db2, worker ID 2", "h", "middle")
    server(left, 48, 100, "primary", ["issues IDs"], 1)
    server(right, 48, 100, "standby", ["issues no IDs"])
    picture.path([(left + width, 98), (right, 98)], "grey", "arrow")
    picture.lines(260, 70, ["WAL with", "the mark"], "s grey", "middle", step=16)
    picture.path([(18, 166), (502, 166)], "red", "dashed")
    picture.text(260, 187, "db1 is cut off, db2 is promoted", "b red", "middle")
    server(left, 202, 124, "cut off", ["can still issue IDs", "for a while"], 1)
    server(right, 202, 124, "primary", ["IDs begin at the clock or", "at the mark, if it is later"], 2)
    picture.text(260, 270, "≠", "h", "middle")
    picture.lines(260, 350, ["No ID repeats: every ID contains the worker ID."], "b", "middle")
    server(left, 370, 80, "stopped", ["its mark is read"])
    server(right, 370, 80, "primary", ["snowflake_set_mark(..)"], 2, False)
    picture.path([(left + width, 416), (right, 416)], "grey", "arrow")
    picture.text(260, 406, "the mark", "s grey", "middle")
    picture.path([(18, 468), (502, 468)], "line", "dashed")
    picture.text(260, 489, "pg_rewind", "m", "middle")
    server(left, 504, 100, "standby", ["issues no IDs"])
    server(right, 504, 100, "primary", ["issues IDs"], 2)
    picture.path([(right, 554), (left + width, 554)], "grey", "arrow")
    picture.lines(260, 526, ["WAL with", "the mark"], "s grey", "middle", step=16)
    picture.text(260, 627, "If db1 is promoted again, its IDs begin at or above the mark.", "s", "middle")
    return picture


def id_():
    """The bits of an ID."""
    picture = Picture("The bits of an ID", "Bit 63 is 0. Bits 62 to 22 are the timestamp, bits 21 to 12 the worker ID, and bits 11 to 0 "
                      "the sequence.", 262)
    fields = [(1, "grey", "box", ""), (41, "blue", "bluebox", "timestamp"), (10, "orange", "orangebox", "worker ID"),
              (12, "green", "greenbox", "sequence")]
    x, high = 12, 63
    for bits, colour, fill, name in fields:
        width = {1: 22, 41: 284}.get(bits, 95)
        picture.box(x, 36, width, 46, fill, colour)
        picture.text(x + width / 2, 64, name or "0", f"b {colour}", "middle")
        if bits == 1:
            picture.text(x + width / 2, 26, str(high), "s grey", "middle")
        else:
            picture.text(x + 3, 26, str(high), "s grey")
            picture.text(x + width - 3, 26, str(high - bits + 1), "s grey", "end")
        x, high = x + width, high - bits
    rows = [("blue", "timestamp, 41 bits", "milliseconds since 2010-11-04 01:42:54.657 UTC, until 2080"),
            ("orange", "worker ID, 10 bits", "the server that issued the ID, 0 to 1023"),
            ("green", "sequence, 12 bits", "the position in the millisecond, 0 to 4095")]
    for place, (colour, name, meaning) in enumerate(rows):
        y = 112 + place * 50
        picture.add("rect", x=12, y=y - 12, width=6, height=40, rx=2, class_=f"f-{colour}")
        picture.text(28, y, name, f"b {colour}")
        picture.text(28, y + 21, meaning, "s")
    return picture


def serial():
    """Who waits for whom if rows are numbered."""
    picture = Picture("Who waits for whom", "Two transactions number a row of the same series and period. If the number is the default of "
                      "a column, transaction B waits from its INSERT until transaction A has ended, including the other work of A. If rows "
                      "are numbered at COMMIT, B works at the same time as A, and waits only while A commits.", 372)
    # The steps of a transaction: its kind, and where it begins and ends.
    kinds = {"work": ("bluebox", "blue"), "insert": ("greenbox", "green"), "commit": ("orangebox", "orange"), "wait": ("paper", "red")}
    plans = [
        ("number as a default", 22, [
            [("insert", 40, 104), ("work", 104, 214), ("commit", 214, 284)],
            [("insert", 60, 124), ("wait", 124, 284), ("work", 284, 394), ("commit", 394, 464)]], (40, 284)),
        ("number at COMMIT", 182, [
            [("insert", 40, 104), ("work", 104, 214), ("commit", 214, 284)],
            [("insert", 60, 124), ("work", 124, 234), ("wait", 234, 284), ("commit", 284, 354)]], (214, 284)),
    ]
    words = {"work": "other work", "insert": "INSERT", "commit": "COMMIT", "wait": "waits"}
    for title, top, rows, (start, end) in plans:
        picture.text(14, top + 4, title, "b")
        picture.text(506, top + 4, "A holds the number", "s green", "end")
        for row, (name, steps) in enumerate(zip("AB", rows)):
            y = top + 30 + row * 48
            picture.text(14, y + 22, name, "b")
            for kind, left, right in steps:
                fill, colour = kinds[kind]
                picture.box(left, y, right - left, 34, fill, colour)
                picture.text((left + right) / 2, y + 22, words[kind], f"s {colour}", "middle")
        picture.path([(start, top + 18), (end, top + 18)], "green", "thick")
    picture.path([(40, 338), (480, 338)], "grey", "arrow")
    picture.text(480, 358, "time", "s grey", "end")
    return picture


def main():
    """Writes all pictures."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, draw in {"mark": mark, "bounds": bounds, "failover": failover, "id": id_, "serial": serial}.items():
        (directory / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
