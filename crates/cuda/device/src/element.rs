//! The types of values that a pipeline takes from a device.

use bytemuck::Pod;
use recoup_core::{ElementType, Values, ValuesMut};

/// A type of values that a pipeline takes.
pub trait DeviceElement: Pod + Send + Sync {
    /// The type, as the pipeline knows it.
    const ELEMENT: ElementType;

    /// Returns the values of a slice of this type.
    fn values(source: Values<'_>) -> Option<&[Self]>;

    /// Returns the values of a slice of this type, to be overwritten.
    fn values_mut(target: ValuesMut<'_>) -> Option<&mut [Self]>;
}

/// Defines the element types, a line each.
macro_rules! elements {
    ($($type:ty => $variant:ident),+ $(,)?) => {$(
        impl DeviceElement for $type {
            const ELEMENT: ElementType = ElementType::$variant;

            fn values(source: Values<'_>) -> Option<&[Self]> {
                if let Values::$variant(values) = source { Some(values) } else { None }
            }

            fn values_mut(target: ValuesMut<'_>) -> Option<&mut [Self]> {
                if let ValuesMut::$variant(values) = target { Some(values) } else { None }
            }
        }
    )+};
}

elements!(f64 => F64, f32 => F32, i64 => I64, u8 => Bytes);

/// Does work on values of an element type, as `$type`.
macro_rules! with_type {
    ($element:expr, $type:ident => $work:expr) => {
        match $element {
            recoup_core::ElementType::F64 => {
                type $type = f64;
                $work
            }
            recoup_core::ElementType::F32 => {
                type $type = f32;
                $work
            }
            recoup_core::ElementType::I64 => {
                type $type = i64;
                $work
            }
            recoup_core::ElementType::Bytes => {
                type $type = u8;
                $work
            }
        }
    };
}

pub(crate) use with_type;
