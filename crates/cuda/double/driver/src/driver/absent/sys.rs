//! Calls that fail. Their arguments are not looked at.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::state::call;

/// Declares functions that fail and say so.
macro_rules! absent {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> u32 {
                call(stringify!($name), |driver| {
                    driver.fault(concat!(stringify!($name), ": the double does not have this call").to_owned());
                    Err(CudaStatus::NotSupported)
                })
            }
        )*
    };
}

absent! {
    cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuArrayCreate_v2 cuArrayDestroy
    cuArrayGetDescriptor_v2 cuArrayGetMemoryRequirements cuArrayGetPlane
    cuArrayGetSparseProperties cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal
    cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal cuCtxAttach cuCtxCreate_v2 cuCtxCreate_v3
    cuCtxDestroy_v2 cuCtxDetach cuCtxDisablePeerAccess cuCtxEnablePeerAccess cuCtxGetApiVersion
    cuCtxGetCacheConfig cuCtxGetDevice cuCtxGetExecAffinity cuCtxGetFlags cuCtxGetId cuCtxGetLimit
    cuCtxGetSharedMemConfig cuCtxGetStreamPriorityRange cuCtxPopCurrent_v2 cuCtxPushCurrent_v2
    cuCtxResetPersistingL2Cache cuCtxSetCacheConfig cuCtxSetFlags cuCtxSetLimit
    cuCtxSetSharedMemConfig cuDestroyExternalMemory cuDestroyExternalSemaphore
    cuDeviceCanAccessPeer cuDeviceComputeCapability cuDeviceGetByPCIBusId
    cuDeviceGetDefaultMemPool cuDeviceGetExecAffinitySupport cuDeviceGetGraphMemAttribute
    cuDeviceGetLuid cuDeviceGetMemPool cuDeviceGetP2PAttribute cuDeviceGetPCIBusId
    cuDeviceGetProperties cuDeviceGetTexture1DLinearMaxWidth cuDeviceGetUuid cuDeviceGetUuid_v2
    cuDeviceGraphMemTrim cuDevicePrimaryCtxGetState cuDevicePrimaryCtxReset_v2
    cuDevicePrimaryCtxSetFlags_v2 cuDeviceSetGraphMemAttribute cuDeviceSetMemPool
    cuEventRecordWithFlags cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray
    cuFuncGetAttribute cuFuncGetModule cuFuncSetBlockShape cuFuncSetCacheConfig
    cuFuncSetSharedMemConfig cuFuncSetSharedSize cuGetExportTable cuGetProcAddress_v2
    cuGraphAddBatchMemOpNode cuGraphAddChildGraphNode cuGraphAddDependencies cuGraphAddEmptyNode
    cuGraphAddEventRecordNode cuGraphAddEventWaitNode cuGraphAddExternalSemaphoresSignalNode
    cuGraphAddExternalSemaphoresWaitNode cuGraphAddHostNode cuGraphAddKernelNode_v2
    cuGraphAddMemAllocNode cuGraphAddMemFreeNode cuGraphAddMemcpyNode cuGraphAddMemsetNode
    cuGraphAddNode cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
    cuGraphChildGraphNodeGetGraph cuGraphClone cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy
    cuGraphDestroyNode cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent
    cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent cuGraphExecBatchMemOpNodeSetParams
    cuGraphExecChildGraphNodeSetParams cuGraphExecDestroy cuGraphExecEventRecordNodeSetEvent
    cuGraphExecEventWaitNodeSetEvent cuGraphExecExternalSemaphoresSignalNodeSetParams
    cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphExecGetFlags
    cuGraphExecHostNodeSetParams cuGraphExecKernelNodeSetParams_v2 cuGraphExecMemcpyNodeSetParams
    cuGraphExecMemsetNodeSetParams cuGraphExecNodeSetParams cuGraphExecUpdate_v2
    cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams
    cuGraphGetEdges cuGraphGetNodes cuGraphGetRootNodes cuGraphHostNodeGetParams
    cuGraphHostNodeSetParams cuGraphInstantiateWithFlags cuGraphInstantiateWithParams
    cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute cuGraphKernelNodeGetParams_v2
    cuGraphKernelNodeSetAttribute cuGraphKernelNodeSetParams_v2 cuGraphLaunch
    cuGraphMemAllocNodeGetParams cuGraphMemFreeNodeGetParams cuGraphMemcpyNodeGetParams
    cuGraphMemcpyNodeSetParams cuGraphMemsetNodeGetParams cuGraphMemsetNodeSetParams
    cuGraphNodeFindInClone cuGraphNodeGetDependencies cuGraphNodeGetDependentNodes
    cuGraphNodeGetEnabled cuGraphNodeGetType cuGraphNodeSetEnabled cuGraphNodeSetParams
    cuGraphReleaseUserObject cuGraphRemoveDependencies cuGraphRetainUserObject cuGraphUpload
    cuGraphicsMapResources cuGraphicsResourceGetMappedMipmappedArray
    cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceSetMapFlags_v2
    cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources cuGraphicsUnregisterResource
    cuImportExternalMemory cuImportExternalSemaphore cuIpcCloseMemHandle cuIpcGetEventHandle
    cuIpcGetMemHandle cuIpcOpenEventHandle cuIpcOpenMemHandle_v2 cuKernelGetAttribute
    cuKernelGetFunction cuKernelSetAttribute cuKernelSetCacheConfig cuLaunch
    cuLaunchCooperativeKernel cuLaunchCooperativeKernelMultiDevice cuLaunchGrid cuLaunchGridAsync
    cuLaunchHostFunc cuLaunchKernelEx cuLibraryGetGlobal cuLibraryGetKernel cuLibraryGetManaged
    cuLibraryGetModule cuLibraryGetUnifiedFunction cuLibraryLoadData cuLibraryLoadFromFile
    cuLibraryUnload cuLinkAddData_v2 cuLinkAddFile_v2 cuLinkComplete cuLinkCreate_v2 cuLinkDestroy
    cuMemAdvise cuMemAdvise_v2 cuMemAllocAsync cuMemAllocFromPoolAsync cuMemAllocHost_v2
    cuMemAllocManaged cuMemAllocPitch_v2 cuMemExportToShareableHandle cuMemFreeAsync
    cuMemGetAccess cuMemGetAddressRange_v2 cuMemGetAllocationPropertiesFromHandle
    cuMemGetHandleForAddressRange cuMemHostGetDevicePointer_v2 cuMemHostGetFlags
    cuMemImportFromShareableHandle cuMemMapArrayAsync cuMemPoolCreate cuMemPoolDestroy
    cuMemPoolExportPointer cuMemPoolExportToShareableHandle cuMemPoolGetAccess
    cuMemPoolGetAttribute cuMemPoolImportFromShareableHandle cuMemPoolImportPointer
    cuMemPoolSetAccess cuMemPoolSetAttribute cuMemPoolTrimTo cuMemPrefetchAsync
    cuMemPrefetchAsync_v2 cuMemRangeGetAttribute cuMemRangeGetAttributes
    cuMemRetainAllocationHandle cuMemcpy cuMemcpy2DAsync_v2 cuMemcpy2DUnaligned_v2 cuMemcpy2D_v2
    cuMemcpy3DAsync_v2 cuMemcpy3DPeer cuMemcpy3DPeerAsync cuMemcpy3D_v2 cuMemcpyAsync
    cuMemcpyAtoA_v2 cuMemcpyAtoD_v2 cuMemcpyAtoHAsync_v2 cuMemcpyAtoH_v2 cuMemcpyDtoA_v2
    cuMemcpyDtoD_v2 cuMemcpyHtoAAsync_v2 cuMemcpyHtoA_v2 cuMemcpyPeer cuMemcpyPeerAsync
    cuMemsetD16Async cuMemsetD16_v2 cuMemsetD2D16Async cuMemsetD2D16_v2 cuMemsetD2D32Async
    cuMemsetD2D32_v2 cuMemsetD2D8Async cuMemsetD2D8_v2 cuMemsetD32_v2 cuMipmappedArrayCreate
    cuMipmappedArrayDestroy cuMipmappedArrayGetLevel cuMipmappedArrayGetMemoryRequirements
    cuMipmappedArrayGetSparseProperties cuModuleGetGlobal_v2 cuModuleGetLoadingMode
    cuModuleGetSurfRef cuModuleGetTexRef cuModuleLoad cuModuleLoadDataEx cuModuleLoadFatBinary
    cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindMem cuMulticastCreate
    cuMulticastGetGranularity cuMulticastUnbind cuOccupancyAvailableDynamicSMemPerBlock
    cuOccupancyMaxActiveBlocksPerMultiprocessor
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags cuOccupancyMaxActiveClusters
    cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialBlockSizeWithFlags
    cuOccupancyMaxPotentialClusterSize cuParamSetSize cuParamSetTexRef cuParamSetf cuParamSeti
    cuParamSetv cuPointerSetAttribute cuProfilerInitialize cuProfilerStart cuProfilerStop
    cuSignalExternalSemaphoresAsync cuStreamAddCallback cuStreamAttachMemAsync
    cuStreamBatchMemOp_v2 cuStreamBeginCapture_v2 cuStreamCopyAttributes
    cuStreamCreateWithPriority cuStreamEndCapture cuStreamGetAttribute cuStreamGetCaptureInfo_v2
    cuStreamGetCtx cuStreamGetFlags cuStreamGetId cuStreamGetPriority cuStreamIsCapturing
    cuStreamSetAttribute cuStreamUpdateCaptureDependencies cuStreamWaitValue32_v2
    cuStreamWaitValue64_v2 cuStreamWriteValue32_v2 cuStreamWriteValue64_v2 cuSurfObjectCreate
    cuSurfObjectDestroy cuSurfObjectGetResourceDesc cuSurfRefGetArray cuSurfRefSetArray
    cuTensorMapEncodeIm2col cuTensorMapEncodeTiled cuTensorMapReplaceAddress cuTexObjectCreate
    cuTexObjectDestroy cuTexObjectGetResourceDesc cuTexObjectGetResourceViewDesc
    cuTexObjectGetTextureDesc cuTexRefCreate cuTexRefDestroy cuTexRefGetAddressMode
    cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetBorderColor cuTexRefGetFilterMode
    cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy cuTexRefGetMipmapFilterMode
    cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp cuTexRefGetMipmappedArray
    cuTexRefSetAddress2D_v3 cuTexRefSetAddressMode cuTexRefSetAddress_v2 cuTexRefSetArray
    cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags cuTexRefSetFormat
    cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias
    cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray cuThreadExchangeStreamCaptureMode
    cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain cuWaitExternalSemaphoresAsync
}
