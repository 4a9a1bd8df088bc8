use super::*;
use crate::{
    fixtures::{object_of, parse_text},
    indexer::{
        index::{Extract, IndexId, TypedIndex},
        tests::Bomb,
    },
    scope::{Partitions, Scope},
};
use kube_informer_wire::{Packer, Packing};
use proptest::prelude::*;
use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// What the indexes make of an object.
#[derive(Debug, Clone)]
struct Plan {
    key: u16,
    /// Values of the index over a function: some of them panic when they are compared or dropped.
    values: Vec<u8>,
    /// The field of the other index: missing, not to be decoded, or a text.
    field: u8,
    packed: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let values = prop::collection::vec(prop_oneof![8 => 0..8_u8, 1 => 8..14_u8], 0..4);
    (0..2000_u16, values, 0..4_u8, any::<bool>()).prop_map(|(key, values, field, packed)| Plan {
        key,
        values,
        field,
        packed,
    })
}

fn value(number: u8) -> String {
    let kind = match number {
        0..8 => "v",
        8..10 => "ord",
        10..12 => "drop",
        12 => "none",
        _ => "panic",
    };
    format!("{kind}{number}")
}

fn make(plan: &Plan, version: usize, packer: &Packer, empty: &Store) -> AnyObject {
    let name = format!("n{:04}", plan.key);
    let field = ["", r#""one":"\ud800""#, r#""one":"x""#, r#""one":"y""#][usize::from(plan.field)];
    let values: Vec<_> = plan.values.iter().map(|&number| value(number)).collect();
    let meta = format!(
        r#"{{"namespace":"ns","name":"{name}","uid":"{name}","resourceVersion":"{version}","labels":{{"values":"{}"}}}}"#,
        values.join("-")
    );
    let object = parse_text(&format!(r#"{{"metadata":{meta},"data":{{{field}}}}}"#));
    if plan.packed { packer.pack_with(object, empty.snapshot.fields()) } else { object }
}

/// A store with an index over a function and one over a field.
#[derive(Clone)]
struct Store {
    snapshot: Snapshot,
    by_label: IndexId,
    by_field: IndexId,
    panicked: Vec<ObjectKey>,
}

impl Store {
    /// A store without objects. Counts the calls of the function.
    fn new(calls: &Arc<AtomicUsize>) -> Self {
        let mut snapshot = Snapshot::new(0, Partitions::of_scope(&Scope::all()));
        let calls = Arc::clone(calls);
        let by_label = move |object: &AnyObject| {
            calls.fetch_add(1, Relaxed);
            let label = object.labels().get("values").unwrap_or_default();
            assert!(!label.contains("panic"), "on purpose");
            let values = label.split('-').filter(|value| !value.is_empty());
            (!label.contains("none")).then(|| values.map(|value| Bomb(value.to_owned())).collect())
        };
        let function = Extract::Function(Arc::new(by_label));
        let by_label = snapshot.add_index(Box::new(TypedIndex::<Bomb>::new(function)), None);
        let text = |found: &[serde_json::Value]| {
            found.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let slot = snapshot.slot(&"data.one".parse().unwrap());
        let field = TypedIndex::<String>::new(Extract::Field(slot, text));
        let by_field = snapshot.add_index(Box::new(field), Some(slot));
        Self { snapshot, by_label, by_field, panicked: Vec::new() }
    }

    fn put(&mut self, object: AnyObject) -> Option<AnyObject> {
        self.snapshot.put(object, &mut self.panicked)
    }

    fn fill(&mut self, objects: &[AnyObject]) {
        let mut fill = self.snapshot.begin_fill(objects.len()).expect("an empty store");
        objects.iter().for_each(|object| fill.add(object));
        self.snapshot.fill(fill, &mut self.panicked);
    }

    fn trees(&self) -> usize {
        self.snapshot.memory(&Default::default()).trees
    }
}

fn texts<'a>(objects: impl Iterator<Item = &'a AnyObject>) -> Vec<String> {
    objects.map(|object| format!("{}@{}", object.key(), object.resource_version())).collect()
}

/// Checks that two stores show the same.
fn check_same(a: &Store, b: &Store) {
    let [shown_a, shown_b] = [a, b].map(|store| {
        let Store { snapshot, by_label, by_field, panicked } = store;
        let found = snapshot
            .objects()
            .filter(|object| snapshot.get(object.key()).is_some_and(|found| found.is_identical(object)));
        assert_eq!(found.count(), snapshot.len(), "every object is found by its key");
        let labels = snapshot.index::<Bomb>(*by_label).unwrap();
        let fields = snapshot.index::<String>(*by_field).unwrap();
        let labels: Vec<_> = (0..14).map(|number| texts(labels.get(value(number).as_str()))).collect();
        let of_fields: Vec<_> = fields.values().iter().map(|value| texts(fields.get(value))).collect();
        let omitted = [by_label, by_field].map(|id| snapshot.omitted(*id).unwrap());
        (texts(snapshot.objects()), labels, of_fields, omitted, snapshot.bytes(), panicked.clone())
    });
    assert_eq!(shown_a, shown_b);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn filling_a_store_is_putting_each_object(
        plans in prop::collection::vec(plan(), 0..400),
        in_order in prop::bool::weighted(0.7),
        changes in prop::collection::vec((plan(), any::<bool>()), 0..100),
        used_before in any::<bool>(),
    ) {
        let (packer, calls) = (Packer::new(Packing::Packed), Arc::new(AtomicUsize::new(0)));
        let mut empty = Store::new(&calls);
        if used_before {
            // The indexes know some values of an object that is gone.
            let gone = Plan { key: 1, values: vec![1, 8], field: 2, packed: false };
            let object = make(&gone, 1, &packer, &empty);
            empty.put(object.clone());
            empty.snapshot.remove(object.key());
            empty.panicked.clear();
        }
        let mut plans = plans;
        let mut keys = HashSet::new();
        plans.retain(|plan| keys.insert(plan.key));
        if in_order {
            plans.sort_by_key(|plan| plan.key);
        }
        let objects: Vec<_> =
            plans.iter().zip(1..).map(|(plan, version)| make(plan, version, &packer, &empty)).collect();
        let (mut filled, mut model) = (empty.clone(), empty);
        objects.iter().for_each(|object| _ = model.put(object.clone()));
        calls.store(0, Relaxed);
        filled.fill(&objects);
        prop_assert_eq!(calls.load(Relaxed), objects.len(), "each object is read once");
        check_same(&filled, &model);
        if in_order {
            prop_assert!(filled.trees() <= model.trees());
        }
        let (first, kept) = (filled.clone(), model.clone());
        for (version, (plan, put)) in (10_000..).zip(&changes) {
            let object = make(plan, version, &packer, &filled);
            let (old, expected) = match put {
                true => (filled.put(object.clone()), model.put(object)),
                false => (filled.snapshot.remove(object.key()), model.snapshot.remove(object.key())),
            };
            prop_assert_eq!(texts(old.iter()), texts(expected.iter()));
        }
        check_same(&filled, &model);
        check_same(&first, &kept);
        // Every object is filed where it is removed from.
        for object in &objects {
            filled.snapshot.remove(object.key());
            model.snapshot.remove(object.key());
        }
        check_same(&filled, &model);
    }
}

/// The first value of an index is not compared: it must not stay if its object is left out, because no other value could be
/// found then.
#[test]
fn a_value_that_panics_is_forgotten_with_its_object() {
    let packer = Packer::new(Packing::Packed);
    let mut store = Store::new(&Arc::default());
    let plans = [vec![8, 1], vec![1], vec![2, 9, 3], vec![2], vec![1, 2, 1]];
    let plans = plans.into_iter().zip(0..).map(|(values, key)| Plan { key, values, field: 0, packed: true });
    let objects: Vec<_> = plans.map(|plan| make(&plan, 1, &packer, &store)).collect();
    store.fill(&objects);
    assert_eq!(store.panicked, [objects[0].key().clone(), objects[2].key().clone()]);
    let index = store.snapshot.index::<Bomb>(store.by_label).unwrap();
    assert_eq!(texts(index.get("v1")), ["ns/n0001@1", "ns/n0004@1"]);
    assert_eq!(texts(index.get("v2")), ["ns/n0003@1", "ns/n0004@1"]);
    assert_eq!(store.snapshot.omitted(store.by_label), Ok(2));
}

#[test]
fn a_store_with_objects_is_not_filled() {
    let mut store = Store::new(&Arc::default());
    let object = object_of("ns/a", "u", 1);
    store.put(object.clone());
    assert!(store.snapshot.begin_fill(1).is_none());
    store.snapshot.remove(object.key());
    assert!(store.snapshot.begin_fill(1).is_some());
}

/// A step takes bounded time, except for the two that sort.
#[test]
fn a_long_list_is_filed_in_steps() {
    let mut store = Store::new(&Arc::default());
    let mut fill = store.snapshot.begin_fill(0).unwrap();
    let (packer, objects) = (Packer::new(Packing::Packed), 2 * STEP as u16 + 1);
    for key in 0..objects {
        let plan = Plan { key, values: vec![1], field: 2, packed: false };
        fill.add(&make(&plan, 1, &packer, &store));
    }
    let steps = std::iter::from_fn(|| fill.step().then_some(())).count();
    // The hash table, and for each index a sort and three steps that file.
    assert_eq!(steps, 1 + 2 * 4);
    store.snapshot.fill(fill, &mut store.panicked);
    assert_eq!(store.snapshot.len(), usize::from(objects));
    assert_eq!(store.snapshot.index::<Bomb>(store.by_label).unwrap().get("v1").count(), usize::from(objects));
}
