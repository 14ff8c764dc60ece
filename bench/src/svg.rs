//! An SVG picture with the colours of the pictures in docs/pictures. It has its own background and follows the colour scheme of the reader.

use std::fmt::Write;

/// The width of a picture. A reader with a phone sees it at about two thirds of this width, and its type has 14 pixels at least.
pub const WIDTH: f64 = 640.0;
/// The average width of a character, in pixels.
pub const CHARACTER: f64 = 8.7;

/// The name of a colour, and its value in light and in dark mode. The colours `s0` to `s8` are those of the series, chosen for people who
/// cannot tell red from green. Snowflakes are blue.
const COLOURS: [(&str, &str, &str); 13] = [
    ("paper", "#ffffff", "#16181d"),
    ("ink", "#1f2328", "#e6e8eb"),
    ("grey", "#59636e", "#9aa4af"),
    ("line", "#d5dae0", "#3a4048"),
    ("s0", "#0b5cad", "#6cb2ff"),
    ("s1", "#c46200", "#f4a259"),
    ("s2", "#008060", "#4fd0a5"),
    ("s3", "#b03f8a", "#e58fca"),
    ("s4", "#6e7781", "#aab2bb"),
    ("s5", "#2a86bd", "#a8dcff"),
    ("s6", "#a53a14", "#ff9072"),
    ("s7", "#6b48b8", "#bda7ff"),
    ("s8", "#7a6a00", "#dcc84a"),
];
/// The number of colours of series.
const SERIES: usize = 9;

/// Returns the name of the colour of a series.
pub fn colour(series: usize) -> String {
    format!("s{}", series % SERIES)
}

/// A picture with a title and a description.
pub struct Svg {
    title: String,
    description: String,
    parts: String,
}

/// Where a text is beside its position.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// The text begins at the position.
    Start,
    /// The middle of the text is at the position.
    Middle,
    /// The text ends at the position.
    End,
}

impl Svg {
    /// Creates an empty picture.
    pub fn new(title: &str, description: &str) -> Svg {
        Svg { title: escape(title), description: escape(description), parts: String::new() }
    }

    /// Adds a line of text. The style is a list of names: `h` for a heading, `s` for small, and colours.
    pub fn text(&mut self, (x, y): (f64, f64), content: &str, style: &str, anchor: Anchor) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if style.is_empty() { String::new() } else { format!(" class=\"{style}\"") };
        self.add(&format!("<text x=\"{}\" y=\"{}\"{class}{anchor}>{}</text>", short(x), short(y), escape(content)));
    }

    /// Adds a rectangle.
    pub fn rectangle(&mut self, (x, y): (f64, f64), width: f64, height: f64, colour: &str) {
        let (x, y, width, height) = (short(x), short(y), short(width.max(0.0)), short(height));
        self.add(&format!("<rect class=\"f-{colour}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"));
    }

    /// Adds a line through points. The style is empty, `thick` or `thick dashed`.
    pub fn path(&mut self, points: &[(f64, f64)], colour: &str, style: &str) {
        let steps: Vec<_> = points.iter().map(|(x, y)| format!("{} {}", short(*x), short(*y))).collect();
        let class = format!("l-{colour} {style}");
        self.add(&format!("<path class=\"{}\" d=\"M{}\"/>", class.trim_end(), steps.join("L")));
    }

    /// Adds the mark of a series: a circle, a square, a triangle or a diamond.
    pub fn mark(&mut self, (x, y): (f64, f64), series: usize) {
        let colour = colour(series);
        let corners: &[(f64, f64)] = match series % 4 {
            0 => {
                return self.add(&format!(
                    "<circle class=\"f-{colour}\" cx=\"{}\" cy=\"{}\" r=\"5\"/>",
                    short(x),
                    short(y)
                ));
            }
            1 => &[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
            2 => &[(0.0, -5.5), (5.5, 4.5), (-5.5, 4.5)],
            _ => &[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)],
        };
        let corners: Vec<_> = corners.iter().map(|(dx, dy)| format!("{} {}", short(x + dx), short(y + dy))).collect();
        self.add(&format!("<path class=\"f-{colour}\" d=\"M{}Z\"/>", corners.join("L")));
    }

    fn add(&mut self, element: &str) {
        writeln!(self.parts, "{element}").expect("a string can be written");
    }

    /// Returns the file of the picture with this height.
    pub fn finish(&self, height: f64) -> String {
        let colours = |dark: bool| -> String {
            let rules = COLOURS.iter().map(|(name, light, night)| {
                let value = if dark { night } else { light };
                format!(".f-{name}{{fill:{value}}}.l-{name}{{stroke:{value}}}text.{name}{{fill:{value}}}\n")
            });
            rules.collect()
        };
        let text = |dark: bool| format!("text{{fill:{}}}", if dark { COLOURS[1].2 } else { COLOURS[1].1 });
        let height = short(height);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"title description\">\n<title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n<style>\n\
             text{{font-family:sans-serif;font-size:15px}}\n.s{{font-size:14px}}.h{{font-size:18px;font-weight:bold}}\n\
             .l-paper,.l-ink,.l-line,[class^=l-]{{fill:none;stroke-width:1.2}}.thick{{stroke-width:2.5}}.dashed{{stroke-dasharray:6 4}}\n\
             {}\n{}@media (prefers-color-scheme:dark){{\n{}\n{}}}\n</style>\n\
             <rect class=\"f-paper\" width=\"{WIDTH}\" height=\"{height}\" rx=\"8\"/>\n{}</svg>\n",
            self.title,
            self.description,
            text(false),
            colours(false),
            text(true),
            colours(true),
            self.parts
        )
    }
}

/// Breaks a text between words into lines of at most this many characters.
pub fn wrap(text: &str, characters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Returns the width of a text in pixels, approximately.
pub fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// Returns a coordinate without superfluous digits.
fn short(value: f64) -> String {
    format!("{value:.1}").trim_end_matches('0').trim_end_matches('.').to_string()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
