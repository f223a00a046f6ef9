import createClient from "openapi-fetch";
import { noteLoggedOut, noteSilence } from "./connection";
import { noAnswer, problemOf } from "./problem";
import type { components, paths } from "./schema";

/** The types of the server's JSON, generated from its OpenAPI document. */
export type Schemas = components["schemas"];

/** Asks the server; `await ask(api.GET(...))` gives the data or throws a `Problem`. */
export const api = createClient<paths>({ baseUrl: window.location.origin });

// What a proxy answers where the server does not.
const BY_PROXIES = [502, 504];

interface Reply<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

export async function ask<T>(asked: Promise<Reply<T>>): Promise<T> {
  let reply: Reply<T>;
  try {
    reply = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    noteSilence();
    throw noAnswer();
  }
  if (BY_PROXIES.includes(reply.response.status)) {
    noteSilence();
    throw noAnswer();
  }
  if (reply.response.status === 401) noteLoggedOut();
  if (!reply.response.ok) {
    throw problemOf(reply.response.status, reply.error);
  }
  return reply.data as T;
}
