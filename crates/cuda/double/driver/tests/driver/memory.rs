//! The rules of memory: limits, registrations, mappings, addresses.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::{
    self as cuda, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp, CUpointer_attribute, CUresult,
};
use recoup_cuda_double::Settings;

use crate::bench::OpenedDevice;
use crate::sys;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const PAGE: usize = 2 << 20;

#[test]
fn a_device_gives_no_more_memory_than_it_has() {
    let device = OpenedDevice::with(&Settings { memory_bytes: 1 << 20, ..Settings::default() });
    let mut address = 0;
    let full = Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    assert_eq!(sys::allocate(&raw mut address, (1 << 20) + 1), full);
    assert_eq!(sys::allocate(&raw mut address, 0), Err(INVALID));
    let first = device.allocate(1 << 19);
    let second = device.allocate(1 << 19);
    assert_eq!(sys::allocate(&raw mut address, 1), full);
    sys::free(second).unwrap();
    let second = device.allocate(1 << 19);
    let [mut free, mut total] = [0; 2];
    sys::room(&raw mut free, &raw mut total).unwrap();
    assert_eq!([free, total], [0, 1 << 20]);
    [first, second].into_iter().for_each(|address| sys::free(address).unwrap());
    assert!(device.close().is_clean());
}

#[test]
fn an_address_outside_of_an_allocation_is_refused() {
    let device = OpenedDevice::new();
    let address = device.allocate(64);
    let stream = device.stream();
    assert_eq!(sys::fill(address + 1, 0, 64, stream), Err(INVALID));
    assert_eq!(sys::fill(address - 1, 0, 8, stream), Err(INVALID));
    assert_eq!(sys::free(address + 8), Err(INVALID));
    sys::free(address).unwrap();
    assert_eq!(sys::free(address), Err(INVALID), "twice");
    assert_eq!(sys::fill(address, 0, 8, stream), Err(INVALID), "gone");
    sys::destroy_stream(stream).unwrap();
    assert_eq!(device.close().faults.len(), 5);
}

#[test]
fn a_copy_across_two_registrations_is_refused() {
    let device = OpenedDevice::new();
    let mut memory = vec![1u8; 64];
    let start: *mut c_void = memory.as_mut_ptr().cast();
    let middle: *mut c_void = memory[32..].as_mut_ptr().cast();
    let address = device.allocate(64);
    sys::register(start, 32, 0).unwrap();
    sys::register(middle, 32, 0).unwrap();
    assert_eq!(sys::to_device(address, start, 33, null_mut()), Err(INVALID));
    assert_eq!(sys::to_host(start, address, 64, null_mut()), Err(INVALID));
    sys::to_device(address, start, 32, null_mut()).unwrap();
    sys::to_device(address + 32, middle, 32, null_mut()).unwrap();
    sys::synchronize().unwrap();
    sys::unregister(middle).unwrap();
    assert_eq!(sys::to_device(address, start, 33, null_mut()), Err(INVALID), "half of it is registered");
    sys::unregister(start).unwrap();
    sys::to_device(address, start, 64, null_mut()).unwrap();
    sys::free(address).ok();
    let report = device.close();
    let straddling = report.faults.iter().filter(|fault| fault.contains("leaves its piece")).count();
    assert_eq!(straddling, 3, "{report}");
}

#[test]
fn memory_is_registered_once_and_given_back_as_a_whole() {
    let device = OpenedDevice::new();
    let mut memory = vec![0u8; 64];
    let start: *mut c_void = memory.as_mut_ptr().cast();
    let inner: *mut c_void = memory[8..].as_mut_ptr().cast();
    sys::register(start, 32, 0).unwrap();
    assert_eq!(sys::register(inner, 8, 0), Err(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED));
    assert_eq!(sys::register(start, 64, 0), Err(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED));
    assert_eq!(sys::unregister(inner), Err(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
    sys::unregister(start).unwrap();
    assert_eq!(sys::unregister(start), Err(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
    assert_eq!(device.close().faults.len(), 2);
}

#[test]
fn a_registration_that_ends_before_its_copies_is_found() {
    let device = OpenedDevice::new();
    let mut memory = vec![1u8; 64];
    let start: *mut c_void = memory.as_mut_ptr().cast();
    let address = device.allocate(64);
    sys::register(start, 64, 0).unwrap();
    let stream = device.stream();
    sys::to_device(address, start, 64, stream).unwrap();
    sys::unregister(start).unwrap();
    sys::finish_stream(stream).unwrap();
    let report = device.give_back();
    assert_eq!(report.faults, ["cuMemHostUnregister: 1 copies of this memory still wait"]);
}

fn properties() -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: cuda::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: cuda::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: on_device(),
        win32HandleMetaData: null_mut(),
        allocFlags: cuda::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

fn on_device() -> cuda::CUmemLocation {
    cuda::CUmemLocation { type_: cuda::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: 0 }
}

fn read_write() -> CUmemAccessDesc {
    CUmemAccessDesc { location: on_device(), flags: cuda::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE }
}

fn create(bytes: usize) -> Result<u64, CUresult> {
    let mut handle = 0;
    let properties = properties();
    sys::create_memory(&raw mut handle, bytes, &raw const properties, 0).map(|()| handle)
}

fn reserve(bytes: usize) -> Result<u64, CUresult> {
    let mut address = 0;
    sys::reserve(&raw mut address, bytes, 0, 0, 0).map(|()| address)
}

#[test]
fn memory_is_mapped_piece_by_piece_and_used_across_pieces() {
    let device = OpenedDevice::new();
    let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    let mut page = 0;
    let properties = properties();
    sys::granularity(&raw mut page, &raw const properties, option).unwrap();
    assert_eq!(page, PAGE);
    let start = reserve(4 * PAGE).unwrap();
    let access = read_write();
    for index in 0..2 {
        let handle = create(PAGE).unwrap();
        let address = start + (index * PAGE) as u64;
        sys::map(address, PAGE, 0, handle, 0).unwrap();
        sys::set_access(address, PAGE, &raw const access, 1).unwrap();
        // The mapping keeps the memory.
        sys::release_memory(handle).unwrap();
    }
    let stream = device.stream();
    let across = start + PAGE as u64 - 8;
    sys::fill(across, 3, 16, stream).unwrap();
    assert_eq!(device.read(across, 16, stream), [3; 16]);
    assert_eq!(sys::fill(start + 2 * PAGE as u64 - 8, 3, 16, stream), Err(INVALID), "the third is not mapped");
    sys::unmap(start, 2 * PAGE).unwrap();
    sys::release_addresses(start, 4 * PAGE).unwrap();
    let report = device.give_back();
    assert_eq!((report.faults.len(), report.live.len()), (1, 0), "{report}");
}

#[test]
fn mappings_follow_the_drivers_rules() {
    let device = OpenedDevice::with(&Settings { memory_bytes: 3 * PAGE as u64, ..Settings::default() });
    let access = read_write();
    assert_eq!(create(PAGE / 2), Err(INVALID), "whole pages");
    assert_eq!(reserve(PAGE + 1), Err(INVALID), "whole pages");
    assert_eq!(create(4 * PAGE), Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    let start = reserve(4 * PAGE).unwrap();
    let handle = create(2 * PAGE).unwrap();
    assert_eq!(sys::map(start, PAGE, 0, handle, 0), Err(INVALID), "all of a handle");
    assert_eq!(sys::map(start + 3 * PAGE as u64, 2 * PAGE, 0, handle, 0), Err(INVALID), "within what is reserved");
    assert_eq!(sys::map(start + 8, 2 * PAGE, 0, handle, 0), Err(INVALID), "at a page");
    sys::map(start, 2 * PAGE, 0, handle, 0).unwrap();
    let other = create(PAGE).unwrap();
    assert_eq!(sys::map(start + PAGE as u64, PAGE, 0, other, 0), Err(INVALID), "where nothing is mapped");
    assert_eq!(sys::set_access(start, PAGE, &raw const access, 1), Err(INVALID), "whole mappings");
    assert_eq!(sys::unmap(start, PAGE), Err(INVALID), "whole mappings");
    assert_eq!(sys::release_addresses(start, 4 * PAGE), Err(INVALID), "something is mapped");
    sys::unmap(start, 2 * PAGE).unwrap();
    sys::release_memory(handle).unwrap();
    assert_eq!(sys::release_memory(handle), Err(INVALID), "once");
    sys::release_memory(other).unwrap();
    assert_eq!(sys::release_addresses(start, PAGE), Err(INVALID), "all of them");
    sys::release_addresses(start, 4 * PAGE).unwrap();
    let report = device.close();
    assert!(report.live.is_empty() && report.leaks.is_empty(), "{report}");
}

#[test]
fn memory_without_access_is_not_accessed() {
    let device = OpenedDevice::new();
    let start = reserve(PAGE).unwrap();
    let handle = create(PAGE).unwrap();
    sys::map(start, PAGE, 0, handle, 0).unwrap();
    let stream = device.stream();
    sys::fill(start, 1, 8, stream).unwrap();
    assert_eq!(sys::finish_stream(stream), Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    device.close();
}

#[test]
fn memory_unmapped_too_early_is_found() {
    let device = OpenedDevice::new();
    let start = reserve(PAGE).unwrap();
    let handle = create(PAGE).unwrap();
    sys::map(start, PAGE, 0, handle, 0).unwrap();
    let access = read_write();
    sys::set_access(start, PAGE, &raw const access, 1).unwrap();
    let stream = device.stream();
    sys::fill(start, 1, 8, stream).unwrap();
    sys::unmap(start, PAGE).unwrap();
    assert_eq!(sys::finish_stream(stream), Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    let report = device.close();
    assert!(report.live.iter().any(|live| live.contains("handle")), "{report}");
}

#[test]
fn a_pointer_tells_where_it_points() {
    let device = OpenedDevice::new();
    let address = device.allocate(64);
    let pinned = device.pinned(64);
    let kind = |address: u64| {
        let mut kind = 0u32;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        sys::pointer_attribute((&raw mut kind).cast(), attribute, address).map(|()| kind)
    };
    assert_eq!(kind(address + 63), Ok(2));
    assert_eq!(kind(pinned as u64), Ok(1));
    assert_eq!(kind(address + 64), Err(INVALID));
    assert_eq!(kind(&raw const device as u64), Err(INVALID), "the program's own memory");
    let mut start = 0u64;
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR;
    sys::pointer_attribute((&raw mut start).cast(), attribute, address + 5).unwrap();
    assert_eq!(start, address);
    assert!(device.give_back().is_clean());
}
