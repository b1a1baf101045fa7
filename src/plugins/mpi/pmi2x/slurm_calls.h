/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All that the plugin uses of Slurm's library, with the types it relies on, and
 * Slurm's callers of the plugin's hooks. One entry a line, for slurm_types.c:
 *
 *   SLURM_CALL(function, result, arguments...)
 *   SLURM_DATA(variable, type)
 *   SLURM_HOOK(function, result, arguments...)   not called: has a hook's type
 *
 * configure compares the names with libslurmfull.so, and
 * testsuite/unit/plugin/plugin-test.sh with what the built plugin leaves open.
 */
SLURM_CALL(destroy_config_key_pair, void, void *)
SLURM_CALL(env_array_overwrite, int, char ***, const char *, const char *)
SLURM_CALL(error, int, const char *, ...)
SLURM_CALL(get_extra_conf_path, char *, compat_conf_name)
SLURM_CALL(get_log_level, int, void)
SLURM_CALL(getenvp, char *, char **, const char *)
SLURM_CALL(hostlist_count, int, slurm_hostlist)
SLURM_CALL(hostlist_create, slurm_hostlist, const char *)
SLURM_CALL(hostlist_destroy, void, slurm_hostlist)
SLURM_CALL(hostlist_shift, char *, slurm_hostlist)
SLURM_CALL(list_append, compat_appended, slurm_list, void *)
SLURM_CALL(list_create, slurm_list, ListDelF)
SLURM_CALL(list_find_first, void *, slurm_list, ListFindF, void *)
SLURM_CALL(list_peek, void *, slurm_list)
SLURM_CALL(log_var, void, const log_level_t, const char *, ...)
SLURM_CALL(s_p_get_string, int, char **, const char *, const s_p_hashtbl_t *)
SLURM_CALL(s_p_hashtbl_create, s_p_hashtbl_t *, const s_p_options_t *)
SLURM_CALL(s_p_parse_pair, int, s_p_hashtbl_t *, const char *, const char *)
SLURM_DATA(slurm_conf, slurm_conf_t)
SLURM_CALL(slurm_conf_expand_slurmd_path, char *, const char *, const char *, const char *)
SLURM_CALL(slurm_conf_get_addr, int, const char *, slurm_addr_t *, uint16_t)
SLURM_CALL(slurm_conf_get_address, char *, const char *)
SLURM_CALL(slurm_conf_get_hostname, char *, const char *)
SLURM_CALL(slurm_forward_data, int, char **, char *, uint32_t, const char *)
SLURM_CALL(slurm_free_job_info_msg, void, job_info_msg_t *)
SLURM_CALL(slurm_kill_job_step, int, COMPAT_KILL_ARGUMENTS)
SLURM_CALL(slurm_load_job, int, job_info_msg_t **, compat_job, uint16_t)
SLURM_CALL(slurm_option_get, char *, slurm_opt_t *, const char *)
SLURM_CALL(slurm_set_addr, void, slurm_addr_t *, uint16_t, char *)
SLURM_CALL(slurm_strerror, char *, int)
SLURM_CALL(slurm_xcalloc, void *, size_t, size_t, bool, bool, const char *, int, const char *)
SLURM_CALL(slurm_xfree, void, void **)
SLURM_CALL(slurm_xrecalloc, void *, void **, size_t, size_t, bool, bool, const char *, int, const char *)
SLURM_CALL(transfer_s_p_options, void, s_p_options_t **, s_p_options_t *, int *)
SLURM_CALL(unsetenvp, void, char **, const char *)
SLURM_CALL(xstrdup, char *, const char *)
SLURM_HOOK(mpi_g_client_fini, int, mpi_plugin_client_state_t *)
SLURM_HOOK(mpi_g_client_prelaunch, mpi_plugin_client_state_t *, const mpi_step_info_t *, char ***)
SLURM_HOOK(mpi_g_slurmstepd_prefork, int, const stepd_step_rec_t *, char ***)
SLURM_HOOK(mpi_g_slurmstepd_task, int, const mpi_task_info_t *, char ***)
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
SLURM_CALL(run_in_daemon, bool, uint32_t)
SLURM_CALL(xstrstr, char *, const char *, const char *)
#else
SLURM_CALL(running_in_slurmctld, bool, void)
SLURM_CALL(running_in_slurmd, bool, void)
SLURM_CALL(running_in_slurmstepd, bool, void)
#endif
