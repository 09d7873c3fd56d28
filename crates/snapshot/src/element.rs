//! The types of elements.

use recoup_core::ElementType;

/// A type of elements: those of a variable.
pub trait RegionElement: bytemuck::Pod + Send + Sync {
    /// Its name.
    const ELEMENT: ElementType;
}

impl RegionElement for f64 {
    const ELEMENT: ElementType = ElementType::F64;
}

impl RegionElement for f32 {
    const ELEMENT: ElementType = ElementType::F32;
}

impl RegionElement for i64 {
    const ELEMENT: ElementType = ElementType::I64;
}

impl RegionElement for u8 {
    const ELEMENT: ElementType = ElementType::Bytes;
}
