//! The code that the macro writes.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Field, Result};

use crate::attributes::{FieldRole, StructAttributes};
use crate::fields::{StateField, state_fields};

/// Writes the implementations of both traits, and the struct of views.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = StructAttributes::read(&input.attrs)?;
    let fields = state_fields(input)?;
    let state = versioned(input, &attributes, &fields);
    let view = viewed(input, &attributes, &fields);
    Ok(quote! { #state #view })
}

fn versioned(input: &DeriveInput, attributes: &StructAttributes, fields: &[StateField<'_>]) -> TokenStream {
    let StructAttributes { library, .. } = attributes;
    let ident = &input.ident;
    let (parameters, arguments, conditions) = input.generics.split_for_impl();
    let held = fields.iter().filter(|field| field.is_held());
    let listed = held.clone().map(|StateField { field, ident, name, .. }| {
        // Errors of the trait point at the type of the field.
        quote_spanned! {field.ty.span()=> arrays.field(#name, &mut self.#ident); }
    });
    let hot = held.clone().filter_map(|StateField { field, ident, hot, .. }| {
        let hot = hot.as_ref()?;
        // Another type of field is a mismatch that names the type that has a hot range.
        Some(quote_spanned! {field.ty.span()=>
            let hot = #hot;
            #library::FileArray::set_hot(&mut self.#ident, hot);
        })
    });
    let renewed_parts = held.map(|StateField { field, ident, .. }| {
        quote_spanned! {field.ty.span()=> #library::Versioned::renew_skipped(&mut self.#ident); }
    });
    let renewed = fields.iter().filter_map(renewed_field);
    let step = fields.iter().find(|field| matches!(field.role, FieldRole::Counter)).map(step_of);
    let options = options_of(attributes);
    quote! {
        #[automatically_derived]
        impl #parameters #library::Versioned for #ident #arguments #conditions {
            fn list_arrays<'versioned>(&'versioned mut self, arrays: &mut #library::ArrayList<'versioned>) {
                #(#hot)*
                #(#listed)*
            }

            fn renew_skipped(&mut self) {
                #(#renewed_parts)*
                #(#renewed)*
            }

            #step
            #options
        }
    }
}

/// Sets a field that no version holds.
fn renewed_field(field: &StateField<'_>) -> Option<TokenStream> {
    let StateField { field, ident, role, .. } = field;
    match role {
        FieldRole::Renewed(Some(value)) => Some(quote! { self.#ident = #value; }),
        FieldRole::Renewed(None) => {
            let default = quote_spanned! {field.ty.span()=> ::core::default::Default::default() };
            Some(quote! { self.#ident = #default; })
        }
        _ => None,
    }
}

fn step_of(counter: &StateField<'_>) -> TokenStream {
    let StateField { field, ident, .. } = counter;
    let step = quote_spanned! {field.ty.span()=> let step: u64 = self.#ident; };
    quote! {
        fn version_step(&self) -> ::core::option::Option<u64> {
            #step
            ::core::option::Option::Some(step)
        }
    }
}

/// Overrides the settings that the struct names.
fn options_of(attributes: &StructAttributes) -> Option<TokenStream> {
    let StructAttributes { library, block_bytes, keep } = attributes;
    if block_bytes.is_none() && keep.is_none() {
        return None;
    }
    let block_bytes = block_bytes.map(|bytes| quote! { options.block_bytes = #bytes; });
    let keep = keep.map(|versions| quote! { options.keep = #versions; });
    Some(quote! {
        fn memory_options() -> #library::MemoryOptions {
            let mut options = #library::MemoryOptions::default();
            #block_bytes
            #keep
            options
        }
    })
}

fn viewed(input: &DeriveInput, attributes: &StructAttributes, fields: &[StateField<'_>]) -> TokenStream {
    let StructAttributes { library, .. } = attributes;
    let DeriveInput { ident, vis, .. } = input;
    let (parameters, arguments, conditions) = input.generics.split_for_impl();
    let view = format_ident!("{ident}View");
    let about = format!("Read-only views of the fields of [`{ident}`] in one version.");
    let held = fields.iter().filter(|field| field.is_held());
    let declared = held.clone().map(|StateField { field, ident, name, .. }| {
        let about = format!("`{}` in the version.", name.value());
        let Field { vis, ty, .. } = field;
        quote! { #[doc = #about] #vis #ident: #library::FieldView<#ty> }
    });
    let made = held.clone().map(|StateField { ident, name, .. }| {
        quote! { #ident: #library::FieldView::within(version, name, #name) }
    });
    // Written out and not marked as derived: the compiler takes each view for used.
    let shown = held.map(|StateField { ident, name, .. }| quote! { .field(#name, &self.#ident) });
    let title = view.to_string();
    quote! {
        #[doc = #about]
        #vis struct #view #parameters #conditions { #(#declared),* }

        impl #parameters ::core::fmt::Debug for #view #arguments #conditions {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(#title)#(#shown)*.finish()
            }
        }

        #[automatically_derived]
        impl #parameters #library::Viewed for #ident #arguments #conditions {
            type View = #view #arguments;

            fn view(version: &#library::VersionView, name: &str) -> Self::View {
                #view { #(#made),* }
            }
        }
    }
}
