//! Tables and sizes as text.

use crate::terminal::printable;

/// Text with columns as wide as their widest cell.
pub(crate) fn table(rows: Vec<Vec<String>>) -> String {
    let printable_row = |row: Vec<String>| row.iter().map(|cell| printable(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(printable_row).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// Formats a number of bytes.
pub(crate) fn bytes(n: usize) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        _ => format!("{:.1} MiB", n as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["KIND", "N"], ["pods", "12"], ["deployments.apps", "3"]];
        let rows = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        assert_eq!(table(rows), "KIND              N\npods              12\ndeployments.apps  3\n");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!([bytes(999), bytes(2048), bytes(5 << 20)], ["999 B", "2.0 KiB", "5.0 MiB"]);
    }
}
