//! The parts of every plot: colours, widths, and the two forms of a drawing.

use anyhow::{Result, anyhow};
use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::{LegendEntry, LegendPosition, LegendShape};
use kuva::plot::scatter::MarkerShape;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::Scene;
use kuva::render::theme::Theme;

/// A plot in every form.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// File name without its ending.
    pub(crate) name: &'static str,
    /// Caption of a few words.
    pub(crate) caption: &'static str,
    /// Instruction for reading it.
    pub(crate) reading: &'static str,
    /// Description for readers who do not see it.
    pub(crate) description: String,
    /// Drawing for the page: colours are variables of its style.
    pub(crate) svg: String,
    /// The same, as wide as a phone.
    pub(crate) narrow_svg: String,
    /// Light colours, twice the resolution.
    pub(crate) png: Vec<u8>,
}

/// A colour that follows the page, and what it is in the light.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ink {
    /// Name of the style variable.
    pub(super) variable: &'static str,
    /// Colour in light mode.
    light: &'static str,
    /// Colour in dark mode.
    dark: &'static str,
}

/// Colours of runs and causes. They differ in brightness too, so they stay apart without hue. From
/// Okabe and Ito's palette, lightened for dark mode.
pub(super) const SERIES: [Ink; 7] = [
    Ink { variable: "--series-1", light: "#767676", dark: "#a3a3a3" },
    Ink { variable: "--series-2", light: "#0072b2", dark: "#56b4e9" },
    Ink { variable: "--series-3", light: "#d55e00", dark: "#ff9a57" },
    Ink { variable: "--series-4", light: "#009e73", dark: "#3fd3a6" },
    Ink { variable: "--series-5", light: "#aa4499", dark: "#e08cd0" },
    Ink { variable: "--series-6", light: "#a07800", dark: "#f0c93a" },
    Ink { variable: "--series-7", light: "#4b2aad", dark: "#a78bfa" },
];
/// Names that have a colour of their own.
const SCHEMES: [&str; 7] = ["undisturbed", "none", "traditional", "lossless", "lossy", "exact", "auto"];
/// Text and axes.
pub(super) const TEXT: Ink = Ink { variable: "--ink", light: "#222222", dark: "#e6e6e6" };
pub(super) const GRID: Ink = Ink { variable: "--grid", light: "#e2e2e2", dark: "#3a3d42" };
pub(super) const PAPER: Ink = Ink { variable: "--paper", light: "#ffffff", dark: "#17191c" };
pub(super) const FAILURE: Ink = Ink { variable: "--failure", light: "#c0182a", dark: "#ff6b78" };
pub(super) const CHROME: [Ink; 4] = [TEXT, GRID, PAPER, FAILURE];

/// The set of colours to draw with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    Page,
    Light,
}

impl Colours {
    pub(super) fn of(self, ink: Ink) -> String {
        match self {
            Self::Page => format!("var({})", ink.variable),
            Self::Light => ink.light.to_owned(),
        }
    }

    pub(super) fn series(self, index: usize) -> String {
        self.of(SERIES[index % SERIES.len()])
    }

    /// The colour of a scheme, in all plots of all pages.
    pub(super) fn scheme(self, name: &str) -> String {
        self.series(SCHEMES.iter().position(|scheme| *scheme == name).unwrap_or(0))
    }

    pub(super) fn theme(self) -> Theme {
        Theme {
            background: self.of(PAPER),
            axis_color: self.of(TEXT),
            grid_color: self.of(GRID),
            tick_color: self.of(TEXT),
            text_color: self.of(TEXT),
            legend_bg: self.of(PAPER),
            legend_border: "none".to_owned(),
            font_family: Some("system-ui, sans-serif".to_owned()),
            ..Theme::light()
        }
    }
}

/// The colours and the width of a drawing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Canvas {
    pub(super) colours: Colours,
    pub(super) width: f64,
    /// Drawn in letters, which lines of a grid and labels along an axis would hide.
    pub(super) in_letters: bool,
}

/// Widths in which text is as large as the page's.
pub(super) const WIDE: f64 = 560.0;
pub(super) const NARROW: f64 = 360.0;

impl Canvas {
    pub(super) const PAGE: Self = Self { colours: Colours::Page, width: WIDE, in_letters: false };
    pub(super) const PHONE: Self = Self { colours: Colours::Page, width: NARROW, in_letters: false };
    pub(super) const LIGHT: Self = Self { colours: Colours::Light, width: WIDE, in_letters: false };

    pub(super) fn layout(self, plots: &[Plot], height: f64) -> Layout {
        Layout::auto_from_plots(plots)
            .with_width(self.width)
            .with_height(height)
            .with_theme(self.colours.theme())
            .with_legend_position(LegendPosition::OutsideBottomColumns)
            .with_legend_box(false)
            .with_label_size(13)
            .with_tick_size(12)
            .with_body_size(12)
            .with_show_grid(!self.in_letters)
            .with_grid_line_width(1.0)
    }
}

/// Draws something, or nothing where there is nothing to show.
pub(super) type Draw<'a> = &'a dyn Fn(Canvas) -> Option<Scene>;

/// The words of a figure.
pub(super) struct Words {
    pub(super) name: &'static str,
    pub(super) caption: &'static str,
    pub(super) reading: &'static str,
}

pub(super) fn figure(words: Words, title: &str, draw: Draw<'_>) -> Result<Option<Figure>> {
    let Words { name, caption, reading } = words;
    let [page, phone, light] = [Canvas::PAGE, Canvas::PHONE, Canvas::LIGHT].map(draw);
    let (Some(page), Some(phone), Some(light)) = (page, phone, light) else { return Ok(None) };
    let png = RasterBackend::new().with_scale(2.0).render_scene(&light);
    let png = png.map_err(|message| anyhow!("cannot draw {name}.png: {message}"))?;
    let description = format!("{caption}: {title}");
    let svg = own_ids(&scalable(&SvgBackend::new().render_scene(&page)), name);
    let narrow_svg = own_ids(&scalable(&SvgBackend::new().render_scene(&phone)), &format!("{name}-narrow"));
    Ok(Some(Figure { name, caption, reading, description, svg, narrow_svg, png }))
}

/// An entry of a legend that stands for marks of several colours.
pub(super) fn mark_entry(label: &str, shape: MarkerShape, colours: Colours) -> LegendEntry {
    LegendEntry { label: label.to_owned(), color: colours.of(TEXT), shape: LegendShape::Marker(shape), dasharray: None }
}

/// Ids are shared by all drawings of a page, so each drawing's begin with its name.
pub(super) fn own_ids(svg: &str, name: &str) -> String {
    svg.replace(" id=\"", &format!(" id=\"{name}-")).replace("url(#", &format!("url(#{name}-"))
}

/// Lets the page decide the width: the drawing gets a view box instead of a size.
pub(super) fn scalable(svg: &str) -> String {
    let attribute = |name: &str| {
        let from = svg.find(&format!(" {name}=\""))? + name.len() + 3;
        svg[from..].split('"').next()
    };
    let (Some(width), Some(height)) = (attribute("width"), attribute("height")) else { return svg.to_owned() };
    let size = format!(" width=\"{width}\" height=\"{height}\"");
    svg.replacen(&size, &format!(" viewBox=\"0 0 {width} {height}\""), 1)
}

/// The drawing as a file of its own, which brings its colours for light and dark along.
pub(crate) fn standalone(svg: &str) -> String {
    let end = svg.find('>').map_or(0, |position| position + 1);
    format!("{}<style>{}</style>{}", &svg[..end], variables("svg"), &svg[end..])
}

/// The style variables every plot uses, for light and dark.
pub(crate) fn variables(selector: &str) -> String {
    let all = || CHROME.iter().chain(&SERIES);
    let light: String = all().map(|ink| format!("{}:{};", ink.variable, ink.light)).collect();
    let dark: String = all().map(|ink| format!("{}:{};", ink.variable, ink.dark)).collect();
    format!("{selector}{{{light}}}@media (prefers-color-scheme:dark){{{selector}{{{dark}}}}}")
}
