//! Draws a sample. A pure function, so that it can be tested.

use crate::{
    demo::{
        keys,
        sample::{HandlerRow, InformerRow, QueueRow, Sample},
    },
    table::bytes,
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::Line,
    widgets::{Block, Borders, Cell, Paragraph, Row, Table},
};

/// Draws everything, from the server at the top to the workers at the bottom.
pub(super) fn draw(frame: &mut Frame<'_>, sample: &Sample) {
    let informers = u16::try_from(sample.informers.len()).unwrap_or(u16::MAX).saturating_add(2);
    let [title, top, middle, events, help] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(informers),
        Constraint::Length(8),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(heading(sample), title);
    informer_table(frame, top, &sample.informers);
    let tables = Layout::horizontal([Constraint::Length(38), Constraint::Min(40)]).spacing(2);
    let [left, right] = tables.areas(middle);
    handler_table(frame, left, sample);
    queue_table(frame, right, &sample.queues);
    journal(frame, events, sample);
    frame.render_widget(Paragraph::new(keys::HELP).style(Style::new().fg(Color::Cyan)), help);
}

fn heading(sample: &Sample) -> Paragraph<'_> {
    let text = format!(" kube-informer demo   API server {}   {:.0}s", sample.url, sample.seconds);
    Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD))
}

fn section(title: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).title(title).border_style(Style::new().fg(Color::DarkGray))
}

fn head<'a>(names: impl IntoIterator<Item = &'a str>) -> Row<'a> {
    Row::new(names.into_iter().map(Cell::from)).style(Style::new().fg(Color::DarkGray))
}

fn informer_table(frame: &mut Frame<'_>, area: Rect, informers: &[InformerRow]) {
    let row = |row: &InformerRow| {
        let status = Cell::from(row.status.clone()).style(status_style(&row.status));
        let numbers = [
            row.version.clone(),
            row.lists.to_string(),
            row.watches.to_string(),
            row.events.to_string(),
            format!("{:.1}", row.rate),
            row.queued.to_string(),
            row.objects.to_string(),
            bytes(row.bytes),
        ];
        Row::new([Cell::from(row.kind.clone()), status].into_iter().chain(numbers.map(Cell::from)))
    };
    let widths = [11, 8, 7, 5, 7, 6, 5, 4, 7, 9].map(Constraint::Length);
    let names =
        ["KIND", "STATUS", "VERSION", "LISTS", "WATCHES", "EVENTS", "/S", "FIFO", "OBJECTS", "CACHED"];
    let table = Table::new(informers.iter().map(row), widths)
        .header(head(names))
        .block(section(" Reflector ─► DeltaFifo ─► Indexer "));
    frame.render_widget(table, area);
}

fn status_style(status: &str) -> Style {
    Style::new().fg(match status {
        "live" => Color::Green,
        "starting" | "syncing" => Color::Yellow,
        _ => Color::Red,
    })
}

fn handler_table(frame: &mut Frame<'_>, area: Rect, sample: &Sample) {
    let row = |row: &HandlerRow| {
        let stalled = sample.is_stalled && row.name == "auditor";
        let lag = if stalled { "stalled".to_owned() } else { format!("{:.1}s", row.lag) };
        let style = if stalled { Style::new().fg(Color::Red) } else { Style::new() };
        Row::new([row.name.clone(), row.kind.clone(), lag, row.coalesced.to_string()].map(Cell::from))
            .style(style)
    };
    let widths = [11, 11, 7, 6].map(Constraint::Length);
    let table = Table::new(sample.handlers.iter().map(row), widths)
        .header(head(["HANDLER", "OF", "LAG", "MERGED"]))
        .block(section(" Processor ─► Handlers "));
    frame.render_widget(table, area);
}

fn queue_table(frame: &mut Frame<'_>, area: Rect, queues: &[QueueRow]) {
    let row = |row: &QueueRow| {
        let counts = [row.depth.to_string(), row.busy.to_string(), row.later.to_string()];
        let numbers = counts.into_iter().chain([format!("{:.1}", row.rate), row.retries.to_string()]);
        Row::new([row.name.clone()].into_iter().chain(numbers).map(Cell::from))
    };
    let widths = [11, 5, 4, 5, 5, 5].map(Constraint::Length);
    let table = Table::new(queues.iter().map(row), widths)
        .header(head(["QUEUE", "READY", "BUSY", "LATER", "/S", "RETRY"]))
        .block(section(" WorkQueue ─► Workers "));
    frame.render_widget(table, area);
}

fn journal(frame: &mut Frame<'_>, area: Rect, sample: &Sample) {
    let room = usize::from(area.height.saturating_sub(1));
    let skipped = sample.latest.len().saturating_sub(room);
    let lines: Vec<Line<'_>> = sample
        .latest
        .iter()
        .skip(skipped)
        .map(|line| Line::styled(line.as_str(), line_style(line)))
        .collect();
    frame.render_widget(Paragraph::new(lines).block(section(" Latest events ")), area);
}

fn line_style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => Style::new().fg(Color::Green),
        Some('-') => Style::new().fg(Color::Red),
        Some('»') => Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
        Some('!') => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::{Terminal, backend::TestBackend};

    fn drawn(width: u16, height: u16) -> String {
        let informer = InformerRow {
            kind: "replicasets".into(),
            status: "retrying".into(),
            version: "12345".into(),
            ..Default::default()
        };
        let auditor = HandlerRow { name: "auditor".into(), kind: "pods".into(), coalesced: 42, lag: 1.5 };
        let busy = HandlerRow {
            name: "rollouts".into(),
            kind: "deployments".into(),
            coalesced: 999_999,
            lag: 3600.0,
        };
        let sample = Sample {
            url: "http://127.0.0.1:41234".into(),
            informers: vec![informer; 4],
            handlers: vec![auditor, busy],
            queues: vec![QueueRow { name: "replicasets".into(), depth: 7, ..Default::default() }; 3],
            is_stalled: true,
            latest: (0..50).map(|i| format!("+ pod default/web-{i}")).collect(),
            ..Default::default()
        };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, &sample)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn everything_fits_in_80_by_24() {
        let screen = drawn(80, 24);
        for part in [
            "API server http://127.0.0.1:41234",
            "CACHED",
            "retrying",
            "stalled",
            "42",
            "RETRY",
            "q quit",
            "web-49",
        ] {
            assert!(screen.contains(part), "no {part} in\n{screen}");
        }
    }

    /// No column touches the next one, even with the longest names and numbers.
    #[test]
    fn columns_of_both_tables_are_separate() {
        for width in [80, 120] {
            let screen = drawn(width, 24);
            let line =
                |part: &str| screen.lines().find(|line| line.contains(part)).expect("a line of the tables");
            let words = |line: &str| -> Vec<String> {
                line.trim_matches('"').split_whitespace().map(str::to_owned).collect()
            };
            assert_eq!(
                words(line("HANDLER")),
                ["HANDLER", "OF", "LAG", "MERGED", "QUEUE", "READY", "BUSY", "LATER", "/S", "RETRY"]
            );
            assert_eq!(
                words(line("rollouts")),
                ["rollouts", "deployments", "3600.0s", "999999", "replicasets", "7", "0", "0", "0.0", "0"]
            );
        }
    }

    #[test]
    fn a_larger_screen_shows_more_and_a_tiny_one_does_not_panic() {
        let events = |screen: String| screen.matches("+ pod").count();
        assert!(events(drawn(120, 50)) > events(drawn(80, 24)));
        for (width, height) in [(1, 1), (10, 3), (300, 5)] {
            drawn(width, height);
        }
    }
}
