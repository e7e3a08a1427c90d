/* test_header.c - the public header's numbers, sizes and offsets, frozen.
 *
 * What fails here breaks programs that were built before. Structs may grow at the end: then the
 * size here changes and nothing else.
 */
#include <stddef.h>

#include <tundish/tundish.h>
#include <tundish/tundish_device.h>

#define AT(type, field, offset)                                                                    \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field " moved")
#define IS(name, value) _Static_assert((name) == (value), #name " changed")

IS(TUNDISH_OK, 0);
IS(TUNDISH_END, 1);
IS(TUNDISH_END_OF_STREAM, 2);
IS(TUNDISH_NO_VALUE, 3);
IS(TUNDISH_STOPPED, 4);
IS(TUNDISH_E_TIMEOUT, -1);
IS(TUNDISH_E_SERVER_GONE, -20);
IS(TUNDISH_E_PEER_LOST, -21);
IS(TUNDISH_E_DETACHED, -22);
IS(TUNDISH_E_DATA, -30);
IS(TUNDISH_E_ARGUMENT, -40);
IS(TUNDISH_E_LAYOUT, -41);
IS(TUNDISH_E_PIPELINE, -42);
IS(TUNDISH_E_PLACE, -43);
IS(TUNDISH_E_SYSTEM, -60);
IS(TUNDISH_E_CORRUPT, -61);
IS(TUNDISH_E_MEMORY, -62);

IS(TUNDISH_BOOL, 1);
IS(TUNDISH_UINT8, 2);
IS(TUNDISH_INT8, 3);
IS(TUNDISH_UINT16, 4);
IS(TUNDISH_INT16, 5);
IS(TUNDISH_UINT32, 6);
IS(TUNDISH_INT32, 7);
IS(TUNDISH_UINT64, 8);
IS(TUNDISH_INT64, 9);
IS(TUNDISH_FLOAT16, 10);
IS(TUNDISH_BFLOAT16, 11);
IS(TUNDISH_FLOAT32, 12);
IS(TUNDISH_FLOAT64, 13);
IS(TUNDISH_STRING, 14);
IS(TUNDISH_DENSE, 1);
IS(TUNDISH_RAGGED, 2);
IS(TUNDISH_SPARSE, 3);
IS(TUNDISH_RANK_MAX, 8);
IS(TUNDISH_BATCH_SHARD_END, 1);
IS(TUNDISH_FOREVER, -1);

AT(tundish_column_spec, name, 0);
AT(tundish_column_spec, dtype, 8);
AT(tundish_column_spec, kind, 12);
AT(tundish_column_spec, rank, 16);
AT(tundish_column_spec, ragged_rank, 20);
AT(tundish_column_spec, shape, 24);
AT(tundish_column_spec, splits_dtype, 88);
AT(tundish_column_spec, widen_dtype, 92);
AT(tundish_column_spec, widen_scale_count, 96);
AT(tundish_column_spec, widen_offset_count, 100);
AT(tundish_column_spec, widen_scale, 104);
AT(tundish_column_spec, widen_offset, 112);
AT(tundish_column_spec, widen_layout, 120);
IS(sizeof(tundish_column_spec), 128);

AT(tundish_spec, column_count, 0);
AT(tundish_spec, column_bytes, 4);
AT(tundish_spec, columns, 8);
IS(sizeof(tundish_spec), 16);

AT(tundish_tensor, name, 0);
AT(tundish_tensor, dtype, 8);
AT(tundish_tensor, kind, 12);
AT(tundish_tensor, rank, 16);
AT(tundish_tensor, ragged_rank, 20);
AT(tundish_tensor, shape, 24);
AT(tundish_tensor, element_count, 32);
AT(tundish_tensor, data_bytes, 40);
AT(tundish_tensor, data, 48);
AT(tundish_tensor, string_offsets, 56);
AT(tundish_tensor, row_splits, 64);
AT(tundish_tensor, row_split_counts, 72);
AT(tundish_tensor, indices, 80);
IS(sizeof(tundish_tensor), 88);

AT(tundish_batch, sequence, 0);
AT(tundish_batch, epoch, 8);
AT(tundish_batch, step, 16);
AT(tundish_batch, tensor_count, 24);
AT(tundish_batch, flags, 28);
AT(tundish_batch, shard, 32);
AT(tundish_batch, visits, 40);
IS(sizeof(tundish_batch), 48);

AT(tundish_options, size, 0);
AT(tundish_options, server, 8);
AT(tundish_options, stream, 16);
AT(tundish_options, session, 24);
AT(tundish_options, group, 32);
AT(tundish_options, replica, 40);
AT(tundish_options, check, 44);
AT(tundish_options, place, 48);
AT(tundish_options, place_bytes, 56);
AT(tundish_options, place_token, 64);
AT(tundish_options, server_timeout_ns, 72);
AT(tundish_options, spin_ns, 80);
AT(tundish_options, open_timeout_ns, 88);
IS(sizeof(tundish_options), 96);

AT(tundish_device_figures, mode, 8);
AT(tundish_device_figures, why, 12);
AT(tundish_device_figures, copied_bytes, 16);
AT(tundish_device_figures, copy_ns, 24);
AT(tundish_device_figures, kernel_ns, 32);
AT(tundish_device_figures, waited_ns, 40);
IS(sizeof(tundish_device_figures), 48);

AT(tundish_mapping, bytes, 8);
AT(tundish_mapping, byte_count, 16);
AT(tundish_mapping, number, 24);
AT(tundish_mapping, descriptor, 32);
IS(sizeof(tundish_mapping), 40);

AT(tundish_info, size, 0);
AT(tundish_info, replica, 8);
AT(tundish_info, replica_count, 12);
AT(tundish_info, first_replica, 16);
AT(tundish_info, total_replica_count, 20);
AT(tundish_info, slot_count, 24);
AT(tundish_info, held_count, 28);
AT(tundish_info, stream, 32);
AT(tundish_info, first_epoch, 40);
AT(tundish_info, first_step, 48);
AT(tundish_info, epoch_steps, 56);
AT(tundish_info, ahead_count, 64);
IS(sizeof(tundish_info), 72);

int
main(void)
{
    return 0;
}
