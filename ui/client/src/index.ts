/** A client for shiftwork: enqueue jobs, wait for them, listen to events, and everything else that its HTTP API does. */

export * from "./api.js";
export * from "./client.js";
export { ApiError, WaitTimeoutError } from "./errors.js";
