//! The logo of an organization on its invoices: `PUT`, `GET` and `DELETE /admin/v1/organizations/{organization}/logo`. The logo has a row of its
//! own, because each request reads the organization.

use crate::{
    documents::logo::{Logo, MOST_BYTES},
    endpoint::{BodySchema, Endpoint, Request, delete, get, put},
    guard::{Operator, Reader},
    http::{
        call::Call,
        header,
        reply::{Handled, Reply},
        upload::Upload,
    },
    objects::write::write,
    operator::collections,
    reference::shapes::{self, described, id, object, text},
    state::App,
};
use bytes::Bytes;
use rental_core::{
    error::{Error, FieldCode},
    operations::{self, Edge, Intent, Prepared, Preparing},
    request::page,
    resources::{
        organization::{self, Organization, SYSTEM},
        parse,
    },
    rows::key,
    store::{Batch, Check, Store, get_one},
};
use serde_json::{Value, json};

/// The endpoints of this file.
pub(super) fn endpoints() -> Vec<Endpoint> {
    let path = "/admin/v1/organizations/{organization}/logo";
    let spec = &organization::SPEC;
    let set = put(path)
        .about(spec, "putOrganizationLogo", "Set logo")
        .says(
            "The body is a PNG image of at most 256 KiB and 1200 x 1200 pixels. Invoices show it from then on, also those that \
             were issued before.",
        )
        .takes(BodySchema::Own(
            json!({"required": true, "content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}),
        ))
        .without_revision()
        .replies("OrganizationLogo")
        .defines("OrganizationLogo", schema())
        .operator(|request| Box::pin(set(request)));
    let show = get(path)
        .about(spec, "getOrganizationLogo", "Retrieve logo")
        .without_revision()
        .replies_in(json!({"image/png": {"schema": {"type": "string", "format": "binary"}}}))
        .reader(|request| Box::pin(show(request)));
    let remove = delete(path)
        .about(spec, "deleteOrganizationLogo", "Remove logo")
        .without_revision()
        .replies("OrganizationLogo")
        .operator(|request| Box::pin(remove(request)));
    vec![set, show, remove]
}

fn schema() -> Value {
    let number = |what| described(shapes::at_least(0), what);
    let properties = json!({
        "object": text("Always `logo`."),
        "organization_id": id("The organization."),
        "bytes": number("Size of the PNG; 0 when the logo was removed."),
        "width": number("Width in pixels."),
        "height": number("Height in pixels."),
    });
    object("", properties)
}

async fn set(mut request: Request<'_, Operator>) -> Handled {
    page::no_parameters(request.call.query())?;
    let stall = request.app.limits.request_timeout;
    let upload = Upload::of(request.call, &mut request.body, MOST_BYTES as u64, stall)?;
    let png = Bytes::from(upload.into_memory().await?);
    let decoded = tokio::task::spawn_blocking({
        let png = png.clone();
        move || Logo::decode(png).map(|logo| logo.size())
    });
    let decoded = decoded.await.map_err(|error| Error::Internal(format!("a logo was not decoded: {error}")))?;
    let size = decoded.map_err(|rule| Error::field("body", FieldCode::Invalid, &rule))?;
    change((request.app, request.call, request.id), Some((png, size))).await
}

async fn remove(request: Request<'_, Operator>) -> Handled {
    page::no_parameters(request.call.query())?;
    change((request.app, request.call, request.id), None).await
}

async fn show(request: Request<'_, Reader>) -> Handled {
    page::no_parameters(request.call.query())?;
    let organization = collections::organization_named(request.app.store(), request.id).await?;
    let row = get_one(request.app.store(), &key::logo(organization.id)).await.map_err(Error::from)?;
    let row = row.ok_or(Error::NotFound { object: "logo" })?;
    Ok(Reply::json(row.value).with(header::CONTENT_TYPE, "image/png"))
}

async fn change((app, call, id): (&App, &Call, &str), logo: Option<(Bytes, (u32, u32))>) -> Handled {
    let organization = collections::organization_named(app.store(), id).await?;
    let png = logo.as_ref().map(|(png, _)| png.clone()).unwrap_or_default();
    Ok(write(app, &organization, call, &png, &Change { id, logo }).await?.without_revision())
}

/// Sets the logo, or removes it.
struct Change<'a> {
    id: &'a str,
    logo: Option<(Bytes, (u32, u32))>,
}

impl Intent for Change<'_> {
    fn prepare<'a>(&'a self, store: &'a dyn Store, _: &'a dyn Edge) -> Preparing<'a> {
        Box::pin(async move {
            let record = operations::get(store, SYSTEM, &organization::SPEC, self.id).await?;
            let organization: Organization = parse(&record.key, &record.value)?;
            let place = key::logo(organization.id);
            let before = get_one(store, &place).await?;
            let mut batch = Batch::default();
            // Nothing appears after the organization was deleted.
            batch.checks.push(Check::Present(record.key));
            match (&self.logo, before) {
                (Some((png, _)), Some(before)) => batch.replace(place, before.revision, png.clone()),
                (Some((png, _)), None) => batch.insert(place, png.clone()),
                (None, Some(_)) => batch.delete(place),
                (None, None) => return Err(Error::NotFound { object: "logo" }),
            }
            let (bytes, (width, height)) = self.logo.as_ref().map_or((0, (0, 0)), |(png, size)| (png.len(), *size));
            let body = json!({"object": "logo", "organization_id": organization.id, "bytes": bytes, "width": width, "height": height});
            Ok(Prepared {
                batch,
                body: body.to_string().into(),
                revision: 1,
                object: Some(Box::new(organization)),
                asks: Vec::new(),
            })
        })
    }
}
