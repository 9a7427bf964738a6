package vkrt

// addWords is, assembled by spirv-as:
//
//	; out[i] = in[i] + addend, for i < n: table {zero, in, out, n, addend}, 64 lanes a group
//	OpCapability Shader
//	OpCapability Int64
//	OpCapability PhysicalStorageBufferAddresses
//	OpMemoryModel PhysicalStorageBuffer64 GLSL450
//	OpEntryPoint GLCompute %main "main" %gid %pc
//	OpExecutionMode %main LocalSize 64 1 1
//	OpDecorate %gid BuiltIn GlobalInvocationId
//	OpDecorate %Push Block
//	OpMemberDecorate %Push 0 Offset 0
//	OpDecorate %Table Block
//	OpMemberDecorate %Table 0 Offset 0
//	OpMemberDecorate %Table 1 Offset 8
//	OpMemberDecorate %Table 2 Offset 16
//	OpMemberDecorate %Table 3 Offset 24
//	OpMemberDecorate %Table 4 Offset 32
//	OpDecorate %Arr ArrayStride 4
//	OpDecorate %Data Block
//	OpMemberDecorate %Data 0 Offset 0
//	%void = OpTypeVoid
//	%fn = OpTypeFunction %void
//	%bool = OpTypeBool
//	%u32 = OpTypeInt 32 0
//	%u64 = OpTypeInt 64 0
//	%v3 = OpTypeVector %u32 3
//	%pin3 = OpTypePointer Input %v3
//	%gid = OpVariable %pin3 Input
//	%Arr = OpTypeRuntimeArray %u32
//	%Data = OpTypeStruct %Arr
//	%pData = OpTypePointer PhysicalStorageBuffer %Data
//	%pu32 = OpTypePointer PhysicalStorageBuffer %u32
//	%Table = OpTypeStruct %u64 %pData %pData %u64 %u64
//	%pTable = OpTypePointer PhysicalStorageBuffer %Table
//	%ppData = OpTypePointer PhysicalStorageBuffer %pData
//	%pu64 = OpTypePointer PhysicalStorageBuffer %u64
//	%Push = OpTypeStruct %pTable
//	%pPush = OpTypePointer PushConstant %Push
//	%ppTable = OpTypePointer PushConstant %pTable
//	%pc = OpVariable %pPush PushConstant
//	%c0 = OpConstant %u32 0
//	%c1 = OpConstant %u32 1
//	%c2 = OpConstant %u32 2
//	%c3 = OpConstant %u32 3
//	%c4 = OpConstant %u32 4
//	%main = OpFunction %void None %fn
//	%l0 = OpLabel
//	%g3 = OpLoad %v3 %gid
//	%i = OpCompositeExtract %u32 %g3 0
//	%tpp = OpAccessChain %ppTable %pc %c0
//	%t = OpLoad %pTable %tpp
//	%np = OpAccessChain %pu64 %t %c3
//	%n64 = OpLoad %u64 %np Aligned 8
//	%n = OpUConvert %u32 %n64
//	%in = OpULessThan %bool %i %n
//	OpSelectionMerge %end None
//	OpBranchConditional %in %body %end
//	%body = OpLabel
//	%inpp = OpAccessChain %ppData %t %c1
//	%inp = OpLoad %pData %inpp Aligned 8
//	%outpp = OpAccessChain %ppData %t %c2
//	%outp = OpLoad %pData %outpp Aligned 8
//	%kp = OpAccessChain %pu64 %t %c4
//	%k64 = OpLoad %u64 %kp Aligned 8
//	%k = OpUConvert %u32 %k64
//	%ip = OpAccessChain %pu32 %inp %c0 %i
//	%x = OpLoad %u32 %ip Aligned 4
//	%y = OpIAdd %u32 %x %k
//	%op = OpAccessChain %pu32 %outp %c0 %i
//	OpStore %op %y Aligned 4
//	OpBranch %end
//	%end = OpLabel
//	OpReturn
//	OpFunctionEnd
var addWords = []uint32{
	0x07230203, 0x00010500, 0x00070000, 0x00000031, 0x00000000, 0x00020011, 0x00000001, 0x00020011,
	0x0000000b, 0x00020011, 0x000014e3, 0x0003000e, 0x000014e4, 0x00000001, 0x0007000f, 0x00000005,
	0x00000001, 0x6e69616d, 0x00000000, 0x00000002, 0x00000003, 0x00060010, 0x00000001, 0x00000011,
	0x00000040, 0x00000001, 0x00000001, 0x00040047, 0x00000002, 0x0000000b, 0x0000001c, 0x00030047,
	0x00000004, 0x00000002, 0x00050048, 0x00000004, 0x00000000, 0x00000023, 0x00000000, 0x00030047,
	0x00000005, 0x00000002, 0x00050048, 0x00000005, 0x00000000, 0x00000023, 0x00000000, 0x00050048,
	0x00000005, 0x00000001, 0x00000023, 0x00000008, 0x00050048, 0x00000005, 0x00000002, 0x00000023,
	0x00000010, 0x00050048, 0x00000005, 0x00000003, 0x00000023, 0x00000018, 0x00050048, 0x00000005,
	0x00000004, 0x00000023, 0x00000020, 0x00040047, 0x00000006, 0x00000006, 0x00000004, 0x00030047,
	0x00000007, 0x00000002, 0x00050048, 0x00000007, 0x00000000, 0x00000023, 0x00000000, 0x00020013,
	0x00000008, 0x00030021, 0x00000009, 0x00000008, 0x00020014, 0x0000000a, 0x00040015, 0x0000000b,
	0x00000020, 0x00000000, 0x00040015, 0x0000000c, 0x00000040, 0x00000000, 0x00040017, 0x0000000d,
	0x0000000b, 0x00000003, 0x00040020, 0x0000000e, 0x00000001, 0x0000000d, 0x0004003b, 0x0000000e,
	0x00000002, 0x00000001, 0x0003001d, 0x00000006, 0x0000000b, 0x0003001e, 0x00000007, 0x00000006,
	0x00040020, 0x0000000f, 0x000014e5, 0x00000007, 0x00040020, 0x00000010, 0x000014e5, 0x0000000b,
	0x0007001e, 0x00000005, 0x0000000c, 0x0000000f, 0x0000000f, 0x0000000c, 0x0000000c, 0x00040020,
	0x00000011, 0x000014e5, 0x00000005, 0x00040020, 0x00000012, 0x000014e5, 0x0000000f, 0x00040020,
	0x00000013, 0x000014e5, 0x0000000c, 0x0003001e, 0x00000004, 0x00000011, 0x00040020, 0x00000014,
	0x00000009, 0x00000004, 0x00040020, 0x00000015, 0x00000009, 0x00000011, 0x0004003b, 0x00000014,
	0x00000003, 0x00000009, 0x0004002b, 0x0000000b, 0x00000016, 0x00000000, 0x0004002b, 0x0000000b,
	0x00000017, 0x00000001, 0x0004002b, 0x0000000b, 0x00000018, 0x00000002, 0x0004002b, 0x0000000b,
	0x00000019, 0x00000003, 0x0004002b, 0x0000000b, 0x0000001a, 0x00000004, 0x00050036, 0x00000008,
	0x00000001, 0x00000000, 0x00000009, 0x000200f8, 0x0000001b, 0x0004003d, 0x0000000d, 0x0000001c,
	0x00000002, 0x00050051, 0x0000000b, 0x0000001d, 0x0000001c, 0x00000000, 0x00050041, 0x00000015,
	0x0000001e, 0x00000003, 0x00000016, 0x0004003d, 0x00000011, 0x0000001f, 0x0000001e, 0x00050041,
	0x00000013, 0x00000020, 0x0000001f, 0x00000019, 0x0006003d, 0x0000000c, 0x00000021, 0x00000020,
	0x00000002, 0x00000008, 0x00040071, 0x0000000b, 0x00000022, 0x00000021, 0x000500b0, 0x0000000a,
	0x00000023, 0x0000001d, 0x00000022, 0x000300f7, 0x00000024, 0x00000000, 0x000400fa, 0x00000023,
	0x00000025, 0x00000024, 0x000200f8, 0x00000025, 0x00050041, 0x00000012, 0x00000026, 0x0000001f,
	0x00000017, 0x0006003d, 0x0000000f, 0x00000027, 0x00000026, 0x00000002, 0x00000008, 0x00050041,
	0x00000012, 0x00000028, 0x0000001f, 0x00000018, 0x0006003d, 0x0000000f, 0x00000029, 0x00000028,
	0x00000002, 0x00000008, 0x00050041, 0x00000013, 0x0000002a, 0x0000001f, 0x0000001a, 0x0006003d,
	0x0000000c, 0x0000002b, 0x0000002a, 0x00000002, 0x00000008, 0x00040071, 0x0000000b, 0x0000002c,
	0x0000002b, 0x00060041, 0x00000010, 0x0000002d, 0x00000027, 0x00000016, 0x0000001d, 0x0006003d,
	0x0000000b, 0x0000002e, 0x0000002d, 0x00000002, 0x00000004, 0x00050080, 0x0000000b, 0x0000002f,
	0x0000002e, 0x0000002c, 0x00060041, 0x00000010, 0x00000030, 0x00000029, 0x00000016, 0x0000001d,
	0x0005003e, 0x00000030, 0x0000002f, 0x00000002, 0x00000004, 0x000200f9, 0x00000024, 0x000200f8,
	0x00000024, 0x000100fd, 0x00010038,
}
