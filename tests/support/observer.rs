//! A subscriber of `tracing` and a recorder of `metrics` that keep in memory what a client reports.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, LocalRecorderGuard, Metadata,
    Recorder, SharedString, Unit,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// The fields of a span or the labels of a metric.
pub type Fields = BTreeMap<String, String>;

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct SeenSpan {
    pub name: &'static str,
    pub fields: Fields,
}

#[derive(Default)]
struct Seen {
    spans: Vec<SeenSpan>,
    /// The level and the message of each event.
    events: Vec<String>,
    /// The values of each counter and histogram.
    metrics: Vec<(String, Fields, f64)>,
    units: BTreeMap<String, Option<Unit>>,
}

/// Keeps what clients report on this thread while its guards live.
#[derive(Clone, Default)]
pub struct Observer(Arc<Mutex<Seen>>);

impl Observer {
    /// Observes the clients of this thread until the guard is dropped.
    pub fn spans(&self) -> DefaultGuard {
        let targets = Targets::new().with_target("edgelatch", LevelFilter::TRACE);
        let layer = self.clone().with_filter(targets);
        tracing::subscriber::set_default(Registry::default().with(layer))
    }

    /// Records the metrics of this thread until the guard is dropped.
    pub fn metrics(&self) -> LocalRecorderGuard<'_> {
        metrics::set_default_local_recorder(self)
    }

    pub fn ended_spans(&self) -> Vec<SeenSpan> {
        self.0.lock().unwrap().spans.clone()
    }

    /// The level and the message of each event so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().events.clone()
    }

    /// The values of a metric, with their labels.
    pub fn values(&self, name: &str) -> Vec<(Fields, f64)> {
        let seen = self.0.lock().unwrap();
        let of_name = seen.metrics.iter().filter(|(other, ..)| other == name);
        of_name.map(|(_, labels, value)| (labels.clone(), *value)).collect()
    }

    /// The sum of a counter over all of its labels.
    pub fn count(&self, name: &str) -> f64 {
        self.values(name).iter().map(|(_, value)| value).sum()
    }

    /// The names of all metrics that were described, with their units.
    pub fn units(&self) -> BTreeMap<String, Option<Unit>> {
        self.0.lock().unwrap().units.clone()
    }

    /// Everything that was reported, as one text.
    pub fn everything(&self) -> String {
        let seen = self.0.lock().unwrap();
        format!("{:?}\n{:?}\n{:?}", seen.spans, seen.events, seen.metrics)
    }
}

/// Reads fields; the message of an event is the field `message`.
#[derive(Default)]
struct Reader(Fields);

impl Visit for Reader {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Observer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut reader = Reader::default();
        attributes.record(&mut reader);
        cx.span(id).unwrap().extensions_mut().insert(reader);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        let mut extensions = span.extensions_mut();
        values.record(extensions.get_mut::<Reader>().unwrap());
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut reader = Reader::default();
        event.record(&mut reader);
        let line = format!("{} {}", event.metadata().level(), reader.0["message"]);
        self.0.lock().unwrap().events.push(line);
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        let span = cx.span(&id).unwrap();
        let fields = span.extensions_mut().remove::<Reader>().unwrap().0;
        self.0.lock().unwrap().spans.push(SeenSpan { name: span.name(), fields });
    }
}

/// A counter or histogram.
struct Metric {
    observer: Observer,
    name: String,
    labels: Fields,
}

impl Metric {
    fn of(observer: &Observer, key: &Key) -> Arc<Self> {
        let labels = key.labels().map(|label| (label.key().to_owned(), label.value().to_owned()));
        let (observer, name) = (observer.clone(), key.name().to_owned());
        Arc::new(Self { observer, name, labels: labels.collect() })
    }

    fn add(&self, value: f64) {
        let metric = (self.name.clone(), self.labels.clone(), value);
        self.observer.0.lock().unwrap().metrics.push(metric);
    }
}

impl CounterFn for Metric {
    fn increment(&self, value: u64) {
        self.add(f64::from(u32::try_from(value).unwrap()));
    }

    fn absolute(&self, value: u64) {
        panic!("no counter is set: {value}");
    }
}

impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        self.add(value);
    }
}

impl Recorder for Observer {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.0.lock().unwrap().units.insert(key.as_str().to_owned(), unit);
    }

    fn describe_gauge(&self, key: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("no gauge exists: {}", key.as_str());
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.0.lock().unwrap().units.insert(key.as_str().to_owned(), unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Metric::of(self, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        panic!("no gauge exists: {}", key.name());
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Metric::of(self, key))
    }
}
