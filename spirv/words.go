package spirv

// SPIR-V numbers, from the unified grammar: only those that the emitter uses.
const (
	magic   = 0x07230203
	version = 0x00010500

	opExtInstImport        = 11
	opExtInst              = 12
	opMemoryModel          = 14
	opEntryPoint           = 15
	opExecutionMode        = 16
	opCapability           = 17
	opTypeVoid             = 19
	opTypeBool             = 20
	opTypeInt              = 21
	opTypeFloat            = 22
	opTypeVector           = 23
	opTypeArray            = 28
	opTypeRuntimeArray     = 29
	opTypeStruct           = 30
	opTypePointer          = 32
	opTypeFunction         = 33
	opConstantTrue         = 41
	opConstantFalse        = 42
	opConstant             = 43
	opFunction             = 54
	opFunctionEnd          = 56
	opVariable             = 59
	opLoad                 = 61
	opStore                = 62
	opAccessChain          = 65
	opDecorate             = 71
	opMemberDecorate       = 72
	opCompositeConstruct   = 80
	opCompositeExtract     = 81
	opConvertFToU          = 109
	opConvertFToS          = 110
	opConvertSToF          = 111
	opConvertUToF          = 112
	opUConvert             = 113
	opSConvert             = 114
	opFConvert             = 115
	opConvertUToPtr        = 120
	opBitcast              = 124
	opIAdd                 = 128
	opFAdd                 = 129
	opISub                 = 130
	opFSub                 = 131
	opIMul                 = 132
	opFMul                 = 133
	opUDiv                 = 134
	opSDiv                 = 135
	opFDiv                 = 136
	opUMod                 = 137
	opUMulExtended         = 151
	opLogicalNotEqual      = 165
	opLogicalOr            = 166
	opLogicalAnd           = 167
	opLogicalNot           = 168
	opSelect               = 169
	opIEqual               = 170
	opINotEqual            = 171
	opULessThan            = 176
	opSLessThan            = 177
	opULessThanEqual       = 178
	opSLessThanEqual       = 179
	opFOrdEqual            = 180
	opFUnordNotEqual       = 183
	opFOrdLessThan         = 184
	opFOrdLessThanEqual    = 188
	opShiftRightLogical    = 194
	opShiftRightArithmetic = 195
	opShiftLeftLogical     = 196
	opBitwiseOr            = 197
	opBitwiseXor           = 198
	opBitwiseAnd           = 199
	opNot                  = 200
	opBitCount             = 205
	opControlBarrier       = 224
	opAtomicIAdd           = 234
	opAtomicAnd            = 240
	opAtomicOr             = 241
	opLoopMerge            = 246
	opSelectionMerge       = 247
	opLabel                = 248
	opBranch               = 249
	opBranchConditional    = 250
	opReturn               = 253

	capShader                         = 1
	capFloat64                        = 10
	capInt64                          = 11
	capStorageBuffer16BitAccess       = 4433
	capStorageBuffer8BitAccess        = 4448
	capSignedZeroInfNanPreserve       = 4466
	capPhysicalStorageBufferAddresses = 5347

	addressingPhysicalStorageBuffer64 = 5348
	memoryGLSL450                     = 1
	modelGLCompute                    = 5
	modeLocalSize                     = 17
	modeSignedZeroInfNanPreserve      = 4461

	storageInput         = 1
	storageWorkgroup     = 4
	storageFunction      = 7
	storagePushConstant  = 9
	storagePhysicalStore = 5349

	decorBlock         = 2
	decorArrayStride   = 6
	decorBuiltIn       = 11
	decorOffset        = 35
	decorNoContraction = 42

	builtinNumWorkgroups     = 24
	builtinWorkgroupID       = 26
	builtinLocalInvocationID = 27

	accessAligned = 2

	scopeDevice    = 1
	scopeWorkgroup = 2
	// AcquireRelease | WorkgroupMemory
	semanticsShared = 0x108

	glslRoundEven = 2
	glslTrunc     = 3
	glslFloor     = 8
	glslCeil      = 9
	glslSqrt      = 31
	glslFma       = 50
	glslFindUMsb  = 75
)
