import createClient from "openapi-fetch";
import { noAnswer, problemOf } from "./problem";
import type { components, paths } from "./schema";

/** The types of the server's JSON, generated from its OpenAPI document. */
export type Schemas = components["schemas"];

/** Asks the server; `await ask(api.GET(...))` gives the data or throws a `Problem`. */
export const api = createClient<paths>({ baseUrl: window.location.origin });

interface Reply<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

export async function ask<T>(asked: Promise<Reply<T>>): Promise<T> {
  let reply: Reply<T>;
  try {
    reply = await asked;
  } catch {
    throw noAnswer();
  }
  if (!reply.response.ok) {
    throw problemOf(reply.response.status, reply.error);
  }
  return reply.data as T;
}
