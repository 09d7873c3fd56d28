//! The calls of recoup.h for blocks: several right-hand sides, each with a bound of its own.

use std::ffi::{c_char, c_void};

use crate::calls::{check_name, text};
use crate::handle::{Handle, RecoupHandle};
use crate::protected::{RECOUP_STATIC, Region, address_of};
use crate::status::{CallFailure, RECOUP_E_NAME, guarded};

/// Lends a block of `columns` columns to the handle, as recoup_protect does with one vector: column
/// j is the variable "name.j", of `count` values from value j * `stride` of `values` on. So
/// `stride` is the leading dimension, at least `count`; columns of a row-major array do not lie
/// together and cannot be lent. `first` and `global` are those of each column. A restore brings
/// back all columns or none. Each iterate of a lossy version has a bound of its own, held to the
/// residual of its column if recoup_columns gave its right-hand side.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME, RECOUP_E_ORDER.
///
/// # Safety
/// `name` is NULL or a C string; `values` has `count` values of `type` for each column,
/// unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_protect_block(
    handle: RecoupHandle,
    name: *const c_char,
    role: i32,
    r#type: i32,
    values: *mut c_void,
    count: u64,
    columns: u64,
    stride: u64,
    first: u64,
    global: u64,
) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { text("name", name) }?;
        let n_columns = n_columns(columns)?;
        if stride < count || role == RECOUP_STATIC {
            let what = format!("variable {name}: {count} values in columns that are {stride} apart, role {role}");
            return Err(CallFailure::argument(what));
        }
        let column = |column: usize| {
            let name = format!("{name}.{column}");
            check_name(&name)?;
            let offset = (column as u64).checked_mul(stride);
            let start = offset.map_or(std::ptr::null_mut(), |value| address_of(r#type, values, value));
            Ok(Region::new(&name, role, r#type, start, count, first, global)?.of_column(column))
        };
        let regions: Vec<Region> = (0..n_columns).map(column).collect::<Result<_, CallFailure>>()?;
        handle.with(|_, core| {
            let is_started = core.is_started();
            for (column, region) in regions.into_iter().enumerate() {
                if core.statics.holds(&format!("{name}.{column}")) {
                    return Err(CallFailure::new(RECOUP_E_NAME, format!("variable {name}.{column}: taken")));
                }
                core.protected.add(region, is_started)?;
            }
            Ok(())
        })
    })
}

/// Gives the problem A X = B: `columns` right-hand sides, of each this rank's rows of
/// recoup_operator, column j from value j * `stride` of `rhs` on. They are copied, and replace the
/// one given to recoup_operator, which comes before. The same number on all ranks.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_OPERATOR when no operator was given,
/// RECOUP_E_ORDER.
///
/// # Safety
/// `rhs` has as many values for each column as the operator has rows, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_columns(handle: RecoupHandle, columns: u64, rhs: *const f64, stride: u64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let n_columns = n_columns(columns)?;
        handle.with(|_, core| {
            let rows = core.rows()?;
            let bytes = columns.checked_mul(stride).and_then(|values| values.checked_mul(8));
            let is_room = stride >= rows as u64 && bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
            let is_memory = rows == 0 || (!rhs.is_null() && rhs.is_aligned());
            if !is_room || !is_memory {
                let what = format!("{columns} columns of {rows} rows, {stride} apart, at {rhs:p}");
                return Err(CallFailure::argument(what));
            }
            let mut all = Vec::with_capacity(rows * n_columns);
            for column in 0..if rows == 0 { 0 } else { n_columns } {
                // SAFETY: the caller lends the rows of each column; their offsets are in range.
                all.extend_from_slice(unsafe { std::slice::from_raw_parts(rhs.add(column * stride as usize), rows) });
            }
            core.set_columns(n_columns, all)
        })
    })
}

/// Gives ||b - A x||_2 of each column of the state that the next recoup_step or recoup_checkpoint
/// saves, over all ranks, as recoup_known does for one vector: `columns` norms, the same on all
/// ranks. The residual_norm and the rhs_norm of these calls are those of the column with the most
/// left to do.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT for another number of columns or norms that are none.
///
/// # Safety
/// `residual_norms` has `columns` values, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_known_columns(handle: RecoupHandle, columns: u64, residual_norms: *const f64) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        let n_columns = n_columns(columns)?;
        if residual_norms.is_null() || !residual_norms.is_aligned() {
            return Err(CallFailure::argument("residual_norms is NULL or not aligned"));
        }
        handle.with(|_, core| {
            core.check_columns(n_columns)?;
            // SAFETY: as the caller promises, for the number of columns it has given before.
            let norms = unsafe { std::slice::from_raw_parts(residual_norms, n_columns) };
            if let Some(norm) = norms.iter().find(|norm| !(**norm >= 0.0 && norm.is_finite())) {
                return Err(CallFailure::argument(format!("||b - A x||: {norm}")));
            }
            core.known.column_norms = norms.to_vec();
            Ok(())
        })
    })
}

/// Most columns of a block.
const COLUMNS_MAX: u64 = 65_535;

fn n_columns(columns: u64) -> Result<usize, CallFailure> {
    if (1..=COLUMNS_MAX).contains(&columns) {
        Ok(columns as usize)
    } else {
        Err(CallFailure::argument(format!("{columns} columns, expected 1 to {COLUMNS_MAX}")))
    }
}
