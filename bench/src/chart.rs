//! SVG charts: lines along an axis, and horizontal bars. Each chart names the machine on which its values were measured.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::table::number;

/// The colours of the series, chosen for people who cannot tell red from green. Snowflakes are blue.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 90, 181),
    RGBColor(230, 130, 0),
    RGBColor(0, 145, 110),
    RGBColor(190, 80, 150),
    RGBColor(120, 120, 120),
    RGBColor(80, 170, 230),
    RGBColor(170, 60, 20),
];
const INK: RGBColor = RGBColor(40, 40, 40);
const FAINT: RGBColor = RGBColor(225, 225, 225);
const FONT: &str = "sans-serif";
const WIDTH: u32 = 900;
const HEAD: i32 = 40;
const FOOT: i32 = 46;

/// A value with its quartiles.
#[derive(Clone, Copy)]
pub struct Point {
    /// The median.
    pub median: f64,
    /// The lower end of the whisker.
    pub low: f64,
    /// The upper end of the whisker.
    pub high: f64,
}

/// Values that belong together, in the order of [`Chart::places`]. Missing values are not drawn.
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The values of the series.
    pub points: Vec<Option<Point>>,
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
    pub series: Vec<Series>,
    /// The notes below the chart.
    pub footer: [String; 2],
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

impl Chart<'_> {
    /// Draws lines from left to right.
    pub fn lines(&self, path: &Path) {
        let range = self.range();
        self.save(path, 430, |area| {
            if self.log {
                self.lines_on(area, (range.0..range.1).log_scale())
            } else {
                self.lines_on(area, range.0..range.1)
            }
        });
    }

    /// Draws bars one below the other. Bars with the same place are next to each other.
    pub fn bars(&self, path: &Path) {
        let range = self.range();
        let row = if self.series.len() > 1 { 22 * self.series.len() + 12 } else { 30 };
        let height = 120 + self.places.len() * row;
        self.save(path, height as u32, |area| {
            if self.log {
                self.bars_on(area, (range.0..range.1).log_scale())
            } else {
                self.bars_on(area, range.0..range.1)
            }
        });
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| series.points.iter().flatten())
    }

    /// Returns the range of the axis of the values. The range begins at zero, or at a round number below all values.
    fn range(&self) -> (f64, f64) {
        let most = self.points().map(|point| point.high).fold(f64::MIN_POSITIVE, f64::max);
        if !self.log {
            return (0.0, most * 1.12);
        }
        let positive = self.points().map(|point| point.low).filter(|low| *low > 0.0);
        let least = positive.fold(most, f64::min);
        (10f64.powf((least * 0.9).log10().floor()), most * 2.0)
    }

    /// Draws everything except the plot itself, and saves the chart.
    fn save<'a>(&self, path: &'a Path, height: u32, plot: impl FnOnce(&Area<'a>) -> Outcome) {
        let drawn = || -> Outcome {
            let root = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
            root.fill(&WHITE)?;
            let height = height as i32;
            root.draw(&Text::new(self.title, (16, 12), (FONT, 19).into_font().style(FontStyle::Bold).color(&INK)))?;
            for (n, text) in self.footer.iter().enumerate() {
                let at = (16, height - FOOT + 12 + 15 * n as i32);
                root.draw(&Text::new(text.as_str(), at, (FONT, 11).into_font().color(&RGBColor(110, 110, 110))))?;
            }
            let widest = self.series.iter().map(|series| series.name.chars().count() as i32).max().unwrap_or(0);
            let legend = if self.series.len() > 1 { 48 + widest * 7 } else { 20 };
            for (n, series) in self.series.iter().enumerate().filter(|_| self.series.len() > 1) {
                let (x, y) = (WIDTH as i32 - legend + 12, HEAD + 22 + 22 * n as i32);
                root.draw(&Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour(n).filled()))?;
                root.draw(&Text::new(series.name.as_str(), (x + 20, y), text(13, HPos::Left, VPos::Center)))?;
            }
            plot(&root.margin(HEAD, FOOT, 16, legend))?;
            root.present()?;
            Ok(())
        };
        drawn().unwrap_or_else(|e| panic!("cannot draw {}: {e}", path.display()));
    }

    fn lines_on<Y>(&self, area: &Area, range: Y) -> Outcome
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let last = self.places.len() as f64 - 1.0;
        let mut chart = ChartBuilder::on(area)
            .set_label_area_size(LabelAreaPosition::Left, 78)
            .set_label_area_size(LabelAreaPosition::Bottom, 46)
            .build_cartesian_2d(-0.04 * last - 0.1..last * 1.04 + 0.1, range)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .x_desc(self.axis)
            .y_desc(self.unit)
            .y_label_formatter(&|value| tick(*value))
            .label_style((FONT, 13).into_font().color(&INK))
            .axis_desc_style((FONT, 13).into_font().color(&INK))
            .bold_line_style(FAINT)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .draw()?;
        let bottom = area.get_pixel_range().1.end - 46;
        for (n, place) in self.places.iter().enumerate() {
            let x = chart.plotting_area().map_coordinate(&(n as f64, 1.0)).0;
            let shift = area.get_base_pixel();
            area.draw(&Text::new(
                place.as_str(),
                (x - shift.0, bottom - shift.1 + 6),
                text(13, HPos::Center, VPos::Top),
            ))?;
        }
        for (n, series) in self.series.iter().enumerate().rev() {
            // The series are shifted slightly, so that series with equal values can be distinguished.
            let aside = (n as f64 - (self.series.len() as f64 - 1.0) / 2.0) * 0.008 * last;
            let place = |(n, point): (usize, &Option<Point>)| Some((n as f64 + aside, (*point)?));
            let points: Vec<_> = series.points.iter().enumerate().filter_map(place).collect();
            let line: Vec<_> = points.iter().map(|(x, p)| (*x, p.median)).collect();
            chart.draw_series([PathElement::new(line, colour(n).stroke_width(2))])?;
            chart.draw_series(points.iter().map(|(x, p)| Circle::new((*x, p.median), 4, colour(n).filled())))?;
            let whisker =
                |(x, p): &(f64, Point)| PathElement::new(vec![(*x, p.low), (*x, p.high)], colour(n).stroke_width(1));
            chart.draw_series(points.iter().map(whisker))?;
        }
        Ok(())
    }

    fn bars_on<X>(&self, area: &Area, range: X) -> Outcome
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        let least = self.range().0;
        let rows = self.places.len() as f64;
        let labels = 40 + self.places.iter().map(|place| place.chars().count() as i32 * 7).max().unwrap_or(0);
        let mut chart = ChartBuilder::on(area)
            .set_label_area_size(LabelAreaPosition::Left, labels)
            .set_label_area_size(LabelAreaPosition::Bottom, 46)
            // This leaves space for the value at the end of the longest bar.
            .margin_right(50)
            .build_cartesian_2d::<X, std::ops::Range<f64>>(range, rows..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_desc(self.unit)
            .x_labels(7)
            .x_label_formatter(&|value| tick(*value))
            .label_style((FONT, 13).into_font().color(&INK))
            .axis_desc_style((FONT, 13).into_font().color(&INK))
            .bold_line_style(FAINT)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .draw()?;
        let shift = area.get_base_pixel();
        for (row, place) in self.places.iter().enumerate() {
            let y = chart.plotting_area().map_coordinate(&(least, row as f64 + 0.5)).1;
            let at = (labels - 8, y - shift.1);
            area.draw(&Text::new(place.as_str(), at, text(13, HPos::Right, VPos::Center)))?;
        }
        let thick = 0.8 / self.series.len() as f64;
        for (n, series) in self.series.iter().enumerate() {
            for (row, point) in series.points.iter().enumerate() {
                let Some(point) = point else { continue };
                let top = row as f64 + 0.1 + n as f64 * thick;
                let (middle, bottom) = (top + thick / 2.0, top + thick * 0.92);
                chart.draw_series([Rectangle::new(
                    [(least, top), (point.median, bottom)],
                    self.fill(n, row).filled(),
                )])?;
                let whisker = vec![(point.low.max(least), middle), (point.high, middle)];
                chart.draw_series([PathElement::new(whisker, INK.stroke_width(1))])?;
                let end = chart.plotting_area().map_coordinate(&(point.high.max(point.median), middle));
                let at = (end.0 - shift.0 + 6, end.1 - shift.1);
                area.draw(&Text::new(number(point.median), at, text(13, HPos::Left, VPos::Center)))?;
            }
        }
        Ok(())
    }

    /// Returns the colour of a bar. If there is only one series, the first bar, which is ours, has a different colour from the
    /// other bars.
    fn fill(&self, series: usize, row: usize) -> RGBColor {
        if self.series.len() > 1 || row == 0 { colour(series) } else { RGBColor(150, 150, 150) }
    }
}

fn colour(n: usize) -> RGBColor {
    COLOURS[n % COLOURS.len()]
}

/// Returns the label of a tick on an axis.
fn tick(value: f64) -> String {
    let short = |value: f64| format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_string();
    match value {
        size if size >= 1e6 => short(size / 1e6) + " M",
        size if size >= 1e4 => short(size / 1e3) + " k",
        size if size >= 1e3 => number(size),
        size => short(size),
    }
}

fn text(size: u32, horizontally: HPos, vertically: VPos) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK).pos(Pos::new(horizontally, vertically))
}
