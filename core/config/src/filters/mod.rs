//! `filters` of the `nexthop:` mapping: stages and presets (`spec/gray-and-nacos.md` section 8).

mod presets;
mod stage;

use crate::error::Result;
use crate::read::At;
use crate::report::What;
use nexthop_engine::spec::{FilterPick, FilterSpec, PolicySpec, StageSpec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Filters before it is known which policy they stand before.
#[derive(Clone, Debug)]
pub(crate) struct Filters {
    stages: Vec<StageSpec>,
    ignore_health: bool,
    /// What presets bring, and which.
    pick: Option<(FilterPick, String)>,
}

/// Reads the list; `None` = it is empty. `named`: the block names a policy, too.
pub(crate) fn filters(at: &At<'_>, named: bool) -> Result<Option<Filters>> {
    let mut read = Filters { stages: Vec::new(), ignore_health: false, pick: None };
    for item in at.items()? {
        stage::entry(&item, &mut read)?;
        if read.stages.len() > FilterSpec::MOST_STAGES {
            return Err(at.fail(format!("there are more than {} stages", FilterSpec::MOST_STAGES)));
        }
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = read.stages.iter().find(|stage| !names.insert(stage.name.as_str())) {
        let text = format!("two stages are named {:?}; give one of them another `name`", twice.name);
        return Err(at.fail(text));
    }
    if let Some((_, preset)) = read.pick.as_ref().filter(|_| !named) {
        at.note(
            What::Used,
            format!("the preset {preset} chooses hosts in place of the cluster's own policy"),
        );
    }
    let empty = read.stages.is_empty() && read.pick.is_none() && !read.ignore_health;
    Ok((!empty).then_some(read))
}

impl Filters {
    /// A preset's way to choose. The finer of Spring's two wins; Nacos' draw excludes them.
    fn bring(&mut self, at: &At<'_>, pick: FilterPick, preset: &str) -> Result<()> {
        let Some((old, by)) = self.pick.take() else {
            self.pick = Some((pick, preset.to_owned()));
            return Ok(());
        };
        let draws = |pick: &FilterPick| matches!(pick, FilterPick::Policy(_));
        if draws(&old) != draws(&pick) {
            let text =
                format!("the presets {by} and {preset} choose hosts in different ways; use one of them");
            return Err(at.fail(text));
        }
        self.pick = Some(if old == FilterPick::Interleave { (old, by) } else { (pick, preset.to_owned()) });
        Ok(())
    }

    /// Filters before `policy`. `named`: the block names it, so it wins over what presets bring.
    pub(crate) fn before(self, policy: PolicySpec, named: bool) -> PolicySpec {
        let pick = match self.pick {
            Some((pick, _)) if !named => pick,
            _ => FilterPick::Policy(policy),
        };
        let spec = FilterSpec { stages: self.stages, ignore_health: self.ignore_health, pick };
        PolicySpec::Filtered(Arc::new(spec))
    }
}
