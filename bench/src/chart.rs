//! SVG charts: lines along an axis, horizontal bars, and dots in their place if the axis of the values is logarithmic, because the length
//! of a bar has no meaning on such an axis. Each chart names the machine on which its values were measured.

use std::fs;
use std::path::Path;

use crate::svg::{Anchor, CHARACTER, Svg, WIDTH, colour, width, wrap};
use crate::table::number;

/// The space between the content and the edges of the picture.
const MARGIN: f64 = 18.0;
/// The distance of two lines of text.
const LINE: f64 = 20.0;
/// The height of a chart of lines, without its head and foot.
const HEIGHT: f64 = 270.0;
/// The height of one bar or dot, and the space between the groups of bars.
const BAR: f64 = 24.0;
const GAP: f64 = 14.0;
/// The largest number of characters of a label in a line.
const LABEL: usize = 27;
/// The smallest ratio of the last place to the first one for which the axis of the places is logarithmic.
const WIDE: f64 = 16.0;

/// A value with its quartiles.
#[derive(Clone, Copy)]
pub struct Quartiles {
    /// The median.
    pub median: f64,
    /// The lower end of the whisker.
    pub low: f64,
    /// The upper end of the whisker.
    pub high: f64,
}

/// Values that belong together, in the order of [`Chart::places`]. Missing values are not drawn.
pub struct ChartSeries {
    /// The name in the legend.
    pub name: String,
    /// The values of the series.
    pub points: Vec<Option<Quartiles>>,
}

/// The content of a chart.
pub struct Chart<'a> {
    /// The heading.
    pub title: &'a str,
    /// The name of the values, with their unit.
    pub unit: &'a str,
    /// True if the axis of the values is logarithmic.
    pub log: bool,
    /// The positions of the values along the axis, or one position for each group of bars.
    pub places: Vec<String>,
    /// The name of the axis of the places.
    pub axis: &'a str,
    /// The series to draw.
    pub series: Vec<ChartSeries>,
    /// The notes below the chart.
    pub footer: [String; 2],
}

/// An axis: the range of its values, the range of its pixels, and whether it is logarithmic.
struct Axis {
    values: (f64, f64),
    pixels: (f64, f64),
    log: bool,
}

impl Axis {
    /// Returns the pixel of a value.
    fn at(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log { value.max(self.values.0).log10() } else { value };
        let (from, to) = (scale(self.values.0), scale(self.values.1));
        self.pixels.0 + (scale(value) - from) / (to - from) * (self.pixels.1 - self.pixels.0)
    }

    /// Returns the values of the ticks: powers of ten, with 2 and 5 times these if there are few, or multiples of a round number.
    fn ticks(&self) -> Vec<f64> {
        let (from, to) = self.values;
        if self.log {
            let decades: Vec<i32> = (from.log10().round() as i32..=to.log10().floor() as i32).collect();
            let factors: &[f64] = if decades.len() > 2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let all = decades.iter().flat_map(|decade| factors.iter().map(|factor| factor * 10f64.powi(*decade)));
            return all.filter(|tick| *tick >= from * 0.999 && *tick <= to).collect();
        }
        let rough = (to - from) / 5.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade).into_iter().find(|step| *step >= rough);
        let step = step.expect("ten times the decade is more");
        (0..=((to - from) / step) as u32).map(|n| from + f64::from(n) * step).collect()
    }
}

impl Chart<'_> {
    /// Draws lines from left to right.
    pub fn lines(&self, path: &Path) {
        let places: Vec<f64> = self.places.iter().map(|place| place.parse().expect("a number")).collect();
        let (first, last) = (places[0], places[places.len() - 1]);
        let wide = last / first >= WIDE;
        let (mut svg, top) = self.head(&self.place_axis(wide));
        let down = Axis { values: self.range(), pixels: (top + HEIGHT, top), log: self.log };
        let left = MARGIN + 58.0;
        let across = Axis { values: (first, last), pixels: (left + 20.0, WIDTH - MARGIN - 20.0), log: wide };
        for tick in down.ticks() {
            let y = down.at(tick);
            svg.path(&[(left, y), (WIDTH - MARGIN, y)], "line", "");
            svg.text((left - 8.0, y + 5.0), &tick_label(tick), "s", Anchor::End);
        }
        for (place, at) in self.places.iter().zip(&places) {
            svg.text((across.at(*at), top + HEIGHT + LINE), place, "s", Anchor::Middle);
        }
        svg.text(((left + WIDTH) / 2.0, top + HEIGHT + 2.0 * LINE), &self.place_axis(wide), "s grey", Anchor::Middle);
        for (n, series) in self.series.iter().enumerate().rev() {
            // The series are shifted slightly, so that series with equal values can be distinguished.
            let aside = (n as f64 - (self.series.len() as f64 - 1.0) / 2.0) * 4.0;
            let point = |(at, point): (&f64, &Option<Quartiles>)| Some((across.at(*at) + aside, (*point)?));
            let points: Vec<_> = places.iter().zip(&series.points).filter_map(point).collect();
            let line: Vec<_> = points.iter().map(|(x, point)| (*x, down.at(point.median))).collect();
            svg.path(&line, &colour(n), if n < 4 { "thick" } else { "thick dashed" });
            for (x, point) in points {
                svg.path(&[(x, down.at(point.low)), (x, down.at(point.high))], &colour(n), "");
                svg.mark((x, down.at(point.median)), n);
            }
        }
        self.save(path, svg, top + HEIGHT + 2.0 * LINE);
    }

    /// Draws bars one below the other, or dots on a logarithmic axis. Bars with the same place are next to each other.
    pub fn bars(&self, path: &Path) {
        let (mut svg, top) = self.head("key");
        let labels: Vec<_> = self.places.iter().map(|place| wrap(place, LABEL)).collect();
        let longest = labels.iter().flatten().map(|line| width(line)).fold(0.0, f64::max);
        let rows = self.series.len() as f64;
        let heights: Vec<f64> = labels.iter().map(|lines| (BAR * rows).max(LINE * lines.len() as f64) + GAP).collect();
        let bottom = top + heights.iter().sum::<f64>();
        // There is space for a value at the end of the longest bar.
        let pixels = (MARGIN + longest + 12.0, WIDTH - MARGIN - 62.0);
        let across = Axis { values: self.range(), pixels, log: self.log };
        for tick in across.ticks() {
            let x = across.at(tick);
            svg.path(&[(x, top), (x, bottom)], "line", "");
            svg.text((x, bottom + LINE - 2.0), &tick_label(tick), "s", Anchor::Middle);
        }
        let mut y = top;
        for (row, (lines, height)) in labels.iter().zip(&heights).enumerate() {
            let middle = y + height / 2.0;
            for (n, line) in lines.iter().enumerate() {
                let down = (n as f64 - (lines.len() as f64 - 1.0) / 2.0) * LINE + 5.0;
                svg.text((pixels.0 - 10.0, middle + down), line, "", Anchor::End);
            }
            for (n, series) in self.series.iter().enumerate() {
                if let Some(point) = series.points.get(row).copied().flatten() {
                    let at = middle + (n as f64 - (rows - 1.0) / 2.0) * BAR;
                    self.bar(&mut svg, &across, point, at, self.fill(n, row));
                }
            }
            y += height;
        }
        self.save(path, svg, bottom + LINE - 2.0);
    }

    /// Draws a bar or dot, the line between its quartiles, and its value.
    fn bar(&self, svg: &mut Svg, across: &Axis, point: Quartiles, y: f64, series: usize) {
        let end = across.at(point.median);
        let whisker = [(across.at(point.low.max(across.values.0)), y), (across.at(point.high), y)];
        if self.log {
            svg.path(&whisker, &colour(series), "");
            svg.mark((end, y), series);
        } else {
            svg.rectangle((across.pixels.0, y - BAR * 0.38), end - across.pixels.0, BAR * 0.76, &colour(series));
            svg.path(&whisker, "ink", "");
        }
        let right = across.at(point.high.max(point.median)) + 9.0;
        svg.text((right, y + 5.0), &number(point.median), "s", Anchor::Start);
    }

    /// Returns the name of the axis of the places.
    fn place_axis(&self, wide: bool) -> String {
        if wide { format!("{}, logarithmic axis", self.axis) } else { self.axis.into() }
    }

    /// Returns the name of the axis of the values.
    fn value_axis(&self) -> String {
        if self.log { format!("{}, logarithmic axis", self.unit) } else { self.unit.into() }
    }

    /// Returns the range of the axis of the values. The range begins at zero, or at a power of ten below all values.
    fn range(&self) -> (f64, f64) {
        let points = || self.series.iter().flat_map(|series| series.points.iter().flatten());
        let most = points().map(|point| point.high.max(point.median)).fold(f64::MIN_POSITIVE, f64::max);
        if !self.log {
            return (0.0, most * 1.06);
        }
        let positive = points().flat_map(|point| [point.low, point.median]).filter(|value| *value > 0.0);
        (10f64.powf(positive.fold(most, f64::min).log10().floor()), most * 1.2)
    }

    /// Draws the heading, the legend and the name of the values. Returns the picture and where the plot begins.
    fn head(&self, by: &str) -> (Svg, f64) {
        let mut svg = Svg::new(self.title, &self.description(by));
        let mut y = 32.0;
        for line in wrap(self.title, 56) {
            svg.text((MARGIN, y), &line, "h", Anchor::Start);
            y += 24.0;
        }
        let mut x = MARGIN;
        for (n, series) in self.series.iter().enumerate().filter(|_| self.series.len() > 1) {
            let wide = 20.0 + width(&series.name);
            if x > MARGIN && x + wide > WIDTH - MARGIN {
                (x, y) = (MARGIN, y + LINE + 2.0);
            }
            svg.mark((x + 6.0, y), n);
            svg.text((x + 18.0, y + 5.0), &series.name, "", Anchor::Start);
            x += wide + 18.0;
        }
        if self.series.len() > 1 {
            y += LINE + 8.0;
        }
        svg.text((MARGIN, y), &self.value_axis(), "s grey", Anchor::Start);
        (svg, y + 16.0)
    }

    /// Returns all values in words, for readers who do not see the picture.
    fn description(&self, by: &str) -> String {
        let series = self.series.iter().map(|series| {
            let points = self.places.iter().zip(&series.points);
            let values = points.filter_map(|(place, point)| Some(format!("{place}: {}", number((*point)?.median))));
            let name = if series.name.is_empty() { String::new() } else { format!("{}: ", series.name) };
            name + &values.collect::<Vec<_>>().join(", ")
        });
        format!("{} by {by}. {}.", self.value_axis(), series.collect::<Vec<_>>().join(". "))
    }

    /// Draws the notes below the plot, which ends at `y`, and saves the chart.
    fn save(&self, path: &Path, mut svg: Svg, mut y: f64) {
        y += 12.0;
        let characters = ((WIDTH - 2.0 * MARGIN) / (CHARACTER * 14.0 / 15.0)) as usize;
        for line in self.footer.iter().flat_map(|note| wrap(note, characters)) {
            y += 18.0;
            svg.text((MARGIN, y), &line, "s grey", Anchor::Start);
        }
        let text = svg.finish(y + 16.0);
        fs::write(path, text).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
    }

    /// Returns the series whose colour a bar has. If there is only one series, the first bar, which is ours, has a different colour from
    /// the other bars.
    fn fill(&self, series: usize, row: usize) -> usize {
        if self.series.len() > 1 || row == 0 { series } else { 4 }
    }
}

/// Returns the label of a tick on an axis.
fn tick_label(value: f64) -> String {
    let short = |value: f64| format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_string();
    match value {
        size if size >= 1e6 => short(size / 1e6) + " M",
        size if size >= 1e4 => short(size / 1e3) + " k",
        size if size >= 1e3 => number(size),
        size => short(size),
    }
}
