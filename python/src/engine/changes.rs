//! Changes of a cluster's hosts, as users give them.

use crate::args::{self, number, text};
use crate::error;
use nexthop::raw::{HostChange, host_fields};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A change as users give it: an address, or a mapping.
pub(super) struct Change {
    pub(super) op: u8,
    fields: u32,
    address: String,
    weight: u32,
    priority: u32,
    health: u8,
    texts: [String; 5],
}

const HEALTH: [&str; 6] = ["unknown", "healthy", "unhealthy", "draining", "timeout", "degraded"];
pub(super) const OPS: [&str; 4] = ["set", "add", "remove", "change"];

impl Change {
    fn read(given: &Bound<'_, PyAny>, op: u8) -> PyResult<Self> {
        let mut change = Self {
            op,
            fields: 0,
            address: String::new(),
            weight: 0,
            priority: 0,
            health: 0,
            texts: Default::default(),
        };
        if given.is_instance_of::<PyString>() {
            change.address = text(given, "an address")?.into();
            return Ok(change);
        }
        let items = given.call_method0("items").map_err(|_| {
            PyTypeError::new_err("a host must be an address or a mapping with an address and other fields")
        })?;
        for item in items.try_iter()? {
            let (name, value): (String, Bound<'_, PyAny>) = item?.extract()?;
            change.set(&name, &value)?;
        }
        Ok(change)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut give = |field: u32, index: usize, text: String| {
            self.fields |= field;
            self.texts[index] = text;
        };
        match name {
            "address" => self.address = text(value, name)?.into(),
            "op" => self.op = args::word(value, name, &OPS)?,
            "weight" => {
                self.fields |= host_fields::WEIGHT;
                self.weight = number(value, name, u32::MAX.into())? as u32;
                if self.weight == 0 {
                    return Err(error::invalid(value.py(), "weight is 0; allowed are 1 to 4294967295"));
                }
            }
            "priority" => {
                self.fields |= host_fields::PRIORITY;
                self.priority = number(value, name, 128)? as u32;
            }
            "health" => {
                self.fields |= host_fields::HEALTH;
                self.health = args::word(value, name, &HEALTH)?;
            }
            "hostname" => give(host_fields::HOSTNAME, 0, text(value, name)?.into()),
            "region" => give(host_fields::LOCALITY, 1, text(value, name)?.into()),
            "zone" => give(host_fields::LOCALITY, 2, text(value, name)?.into()),
            "sub_zone" => give(host_fields::LOCALITY, 3, text(value, name)?.into()),
            "metadata" => give(host_fields::METADATA, 4, crate::head::json(value, name)?),
            _ => return Err(error::invalid(value.py(), &format!("{name:?} is no field of a host"))),
        }
        Ok(())
    }

    pub(super) fn borrowed(&self) -> HostChange<'_> {
        let [hostname, region, zone, sub_zone, metadata] = &self.texts;
        HostChange {
            op: self.op,
            fields: self.fields,
            address: &self.address,
            weight: self.weight,
            priority: self.priority,
            health: self.health,
            hostname,
            region,
            zone,
            sub_zone,
            metadata,
        }
    }
}

pub(super) fn changes(given: &Bound<'_, PyAny>, op: u8) -> PyResult<Vec<Change>> {
    // Both would be iterated over, one character or key after the other.
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err("hosts must be a list, also for a single one"));
    }
    given.try_iter()?.map(|change| Change::read(&change?, op)).collect()
}
