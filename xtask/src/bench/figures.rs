//! Statistics of figures, and their format.

/// Returns the median; of an even number of figures, the larger of the two in the middle.
pub(super) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// Returns the figure below which `part` of all figures are; the largest if there are few figures,
/// and not a number if there are none.
pub(super) fn percentile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place).or_else(|| sorted.last()).copied().unwrap_or(f64::NAN)
}

/// Formats a figure with about three significant digits; from 100 on, as a whole number.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 100.0 || value.fract() == 0.0 => grouped(value.round()),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Rounds a figure to the digits that [`short`] shows or a few more, so that the recorded results
/// do not suggest a higher precision.
pub(super) fn rounded(value: f64) -> f64 {
    let digits = if value.abs() >= 100.0 { 0 } else { 4 };
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// Formats `12 345` with a narrow space between the thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let length = digits.len();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (length - place).is_multiple_of(3) && !text.ends_with('-') {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0]), 2.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_high_percentile_of_few_is_the_largest() {
        assert_eq!(percentile(&[1.0, 5.0, 2.0], 0.99), 5.0);
        let many: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(percentile(&many, 0.99), 198.0);
    }

    #[test]
    fn figures_are_short() {
        let cases = [
            (0.0, "0"),
            (0.0123, "0.012"),
            (1.04, "1.04"),
            (2.0, "2"),
            (12.34, "12.3"),
            (999.6, "1\u{202f}000"),
            (1_234_567.0, "1\u{202f}234\u{202f}567"),
            (-123.0, "-123"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
