//! Derives `HeapSize` of `kube-informer`. Use it through `kube_informer::HeapSize`.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, GenericParam, Index, parse_macro_input, parse_quote};

/// Derives `HeapSize`: the sum over all fields.
#[proc_macro_derive(HeapSize)]
pub fn heap_size(input: TokenStream) -> TokenStream {
    let mut input = parse_macro_input!(input as DeriveInput);
    for param in &mut input.generics.params {
        if let GenericParam::Type(param) = param {
            param.bounds.push(parse_quote!(::kube_informer::HeapSize));
        }
    }
    let body = match &input.data {
        Data::Struct(data) => of_struct(&data.fields),
        Data::Enum(data) => {
            let arms = data.variants.iter().map(|variant| of_variant(&variant.ident, &variant.fields));
            quote!(match self { #(#arms)* _ => 0 })
        }
        Data::Union(data) => {
            let message = "HeapSize cannot be derived for a union; implement it";
            return syn::Error::new(data.union_token.span, message).into_compile_error().into();
        }
    };
    let name = &input.ident;
    let (of, types, bounds) = input.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #of ::kube_informer::HeapSize for #name #types #bounds {
            #[allow(unreachable_patterns)]
            fn heap_size(&self) -> usize {
                #body
            }
        }
    }
    .into()
}

fn of_struct(fields: &Fields) -> proc_macro2::TokenStream {
    let sizes = fields.iter().enumerate().map(|(position, field)| match &field.ident {
        Some(name) => quote!(+ ::kube_informer::HeapSize::heap_size(&self.#name)),
        None => {
            let position = Index::from(position);
            quote!(+ ::kube_informer::HeapSize::heap_size(&self.#position))
        }
    });
    quote!(0 #(#sizes)*)
}

/// The arm of a variant; a variant without fields has none.
fn of_variant(name: &syn::Ident, fields: &Fields) -> proc_macro2::TokenStream {
    let names: Vec<syn::Ident> =
        (0..fields.len()).map(|position| quote::format_ident!("field_{position}")).collect();
    let pattern = match fields {
        Fields::Named(fields) => {
            let fields = fields.named.iter().map(|field| &field.ident);
            quote!({ #(#fields: #names),* })
        }
        Fields::Unnamed(_) => quote!((#(#names),*)),
        Fields::Unit => return quote!(),
    };
    quote!(Self::#name #pattern => 0 #(+ ::kube_informer::HeapSize::heap_size(#names))*,)
}
