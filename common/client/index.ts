/** The typed client of the HTTP interface, for Node and browsers. */
export { OdpClient, type ClientOptions } from "./client.ts";
export type { Content, NamedContent, Upload } from "./content.ts";
export type { CredentialsOptions } from "./credentials.ts";
export { isOdpError, OdpError, type OdpErrorOptions } from "./error.ts";
export type { Operations, Sockets } from "./gen/operations.ts";
export type { Fetch, FetchBody, FetchInit, FetchRead, FetchResponse, OpenSocket, Socket } from "./platform.ts";
export type * from "./types.ts";
export { ERROR_CODES, type ErrorCode } from "../errors.ts";
