//! Typed configurations (`google.protobuf.Any` and the extension wrapper around it).

use super::{At, Fields};
use crate::error::Result;

const EXTENSION: Fields = Fields::of("TypedExtensionConfig", &["name", "typed_config"]);
const TYPED_STRUCT: Fields = Fields::of("TypedStruct", &["type_url", "value"]);

impl<'a> At<'a> {
    /// The message name after the last `/` of `@type`, e.g. `envoy.config.route.v3.RouteConfiguration`.
    pub(crate) fn type_name(&'a self) -> Result<String> {
        let Some(url) = self.raw("@type") else {
            return Err(match self.is_map() {
                true => self.fail("a typed configuration needs the field `@type`"),
                false => self.expected("a mapping with the field `@type`"),
            });
        };
        let text = url.text()?;
        match text.rsplit_once('/') {
            Some((_, name)) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(url.expected("a type URL such as \"type.googleapis.com/envoy...\"")),
        }
    }

    /// Reads this `Any`: hands the message name and the mapping to `reader`, seeing through `TypedStruct`.
    pub(crate) fn any<T>(&'a self, reader: impl FnOnce(&str, At<'_>) -> Result<T>) -> Result<T> {
        let name = self.type_name()?;
        if !matches!(name.as_str(), "xds.type.v3.TypedStruct" | "udpa.type.v1.TypedStruct") {
            return reader(&name, self.as_typed());
        }
        let msg = self.as_typed().message(&TYPED_STRUCT)?;
        let url = msg.need("type_url")?.text()?;
        let inner = url.rsplit_once('/').map_or(url.as_str(), |(_, name)| name);
        reader(inner, msg.need("value")?)
    }

    /// Reads a `TypedExtensionConfig`: its name, its message name (empty without `typed_config`) and its message.
    pub(crate) fn extension<T>(
        &'a self,
        reader: impl FnOnce(&str, &str, Option<At<'_>>) -> Result<T>,
    ) -> Result<T> {
        let msg = self.message(&EXTENSION)?;
        let name = msg.or("name", String::new(), |at| at.text())?;
        match msg.get("typed_config") {
            Some(config) => config.any(|type_name, at| reader(&name, type_name, Some(at))),
            None => reader(&name, "", None),
        }
    }
}
