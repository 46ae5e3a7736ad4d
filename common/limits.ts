/**
 * Every bound of the program, by name and with its unit last. The files in `limits/` group them by part of the program.
 */
export * from "./limits/agent.ts";
export * from "./limits/archives.ts";
export * from "./limits/client.ts";
export * from "./limits/command-line.ts";
export * from "./limits/config.ts";
export * from "./limits/controller.ts";
export * from "./limits/file-sync.ts";
export * from "./limits/files.ts";
export * from "./limits/general.ts";
export * from "./limits/hosts.ts";
export * from "./limits/http.ts";
export * from "./limits/manual.ts";
export * from "./limits/objects.ts";
export * from "./limits/query.ts";
export * from "./limits/scripting.ts";
export * from "./limits/stores.ts";
export * from "./limits/transfer.ts";
export { DAY_SECONDS } from "./limits/units.ts";
export * from "./limits/workers.ts";
