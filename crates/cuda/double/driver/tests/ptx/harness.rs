//! Kernels of a few instructions, written by hand.

use cuda_double::ptx::{Arena, DeviceFault, KernelFault, Launch, Module, ParseError, run};

/// Instructions of a kernel `test`: `%o` is where results go, `%d1` to `%d4` are its four numbers,
/// `%r1` to `%r4` and `%h1` to `%h4` their low bits. `%t` is the thread's number.
pub(crate) fn kernel(body: &str) -> String {
    kernel_with("", "", body)
}

/// The same with variables of the module and with declarations.
pub(crate) fn kernel_with(variables: &str, declarations: &str, body: &str) -> String {
    let numbers: String = (1..=4)
        .map(|i| {
            format!(
                "ld.param.u64 %d{i}, [n{i}]; cvt.u32.u64 %r{i}, %d{i}; cvt.u16.u64 %h{i}, %d{i};\n\
                 and.b32 %r5, %r{i}, 1; setp.ne.u32 %p{i}, %r5, 0;\n"
            )
        })
        .collect();
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n{variables}\n\
         .visible .entry test(.param .u64 out, .param .u64 n1, .param .u64 n2, .param .u64 n3, .param .u64 n4)\n{{\n\
         .reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<20>; .reg .b64 %d<20>; .reg .b32 %t; .reg .b64 %o;\n\
         {declarations}\n{numbers}\
         ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d5, %t, 8; add.s64 %o, %o, %d5;\n{body}\nret;\n}}\n"
    )
}

/// A run of a kernel `test`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial<'a> {
    pub(crate) text: &'a str,
    pub(crate) threads: u32,
    pub(crate) numbers: [u64; 4],
    pub(crate) seed: u64,
    pub(crate) dynamic_shared_bytes: usize,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(text: &'a str, threads: u32) -> Self {
        Self { text, threads, numbers: [0; 4], seed: 0, dynamic_shared_bytes: 0 }
    }

    /// The number that each thread leaves.
    pub(crate) fn run(&self) -> Result<Vec<u64>, KernelFault> {
        let module = Module::parse(self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text));
        let mut arena = Arena::default();
        let out = arena.upload(&vec![0xee; 8 * self.threads as usize]);
        let globals: Vec<u64> = module.globals().iter().map(|global| arena.upload(&global.initial)).collect();
        let parameters: Vec<u8> = [out].iter().chain(&self.numbers).flat_map(|number| number.to_le_bytes()).collect();
        let launch = Launch {
            kernel: module.kernel("test").unwrap(),
            grid: [1, 1, 1],
            block: [self.threads, 1, 1],
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            parameters: &parameters,
            globals: &globals,
            seed: self.seed,
            instructions_max: 1_000_000,
        };
        run(&launch, &mut arena)?;
        Ok(arena.bytes(out).as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    pub(crate) fn fault(&self) -> DeviceFault {
        self.run().unwrap_err().fault
    }
}

/// The result of one instruction for up to four numbers. Its target is `%r0`, `%d0`, `%h0` or
/// `%p0`, as it says.
pub(crate) fn evaluate(instruction: &str, numbers: &[u64]) -> u64 {
    let store = match instruction.split_whitespace().nth(1).unwrap_or_default().trim_end_matches(',') {
        "%d0" => "st.global.u64 [%o], %d0;",
        "%r0" => "cvt.u64.u32 %d0, %r0; st.global.u64 [%o], %d0;",
        "%h0" => "cvt.u64.u16 %d0, %h0; st.global.u64 [%o], %d0;",
        "%p0" | "%p0|%p9" => "selp.u64 %d0, 1, 0, %p0; st.global.u64 [%o], %d0;",
        other => panic!("{other} is no target of a test"),
    };
    let text = kernel(&format!("{instruction}\n{store}"));
    let mut trial = Trial::new(&text, 1);
    trial.numbers[..numbers.len()].copy_from_slice(numbers);
    trial.run().unwrap_or_else(|fault| panic!("{instruction}: {fault}"))[0]
}

/// The bits of a double.
pub(crate) fn d(x: f64) -> u64 {
    x.to_bits()
}

/// The bits of a single.
pub(crate) fn s(x: f32) -> u64 {
    u64::from(x.to_bits())
}

/// A double that is no number.
pub(crate) const NAN: u64 = 0x7ff8_0000_0000_0000;

/// An instruction, its numbers and its result.
pub(crate) type Case<'a> = (&'a str, &'a [u64], u64);

pub(crate) fn check(cases: &[Case<'_>]) {
    for (instruction, numbers, expected) in cases {
        let found = evaluate(instruction, numbers);
        assert!(found == *expected, "{instruction} of {numbers:x?}: {found:#x}, expected {expected:#x}");
    }
}

/// What the text is refused for.
pub(crate) fn refusal(text: &str) -> ParseError {
    Module::parse(text).map(|_| ()).expect_err(text)
}
