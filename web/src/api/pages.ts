/** Part of a list, as the server tells it. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

/** How the rest of a list is asked for. */
export interface Rest {
  limit: number;
  after: string;
}

/** A page with as many items as were asked for: one of large items ends earlier. */
export async function filled<T, P extends Page<T>>(
  first: P & Page<T>,
  limit: number,
  more: (rest: Rest) => Promise<Page<T>>,
): Promise<P> {
  const items = [...first.items];
  let after = first.next;
  while (after !== null && items.length < limit) {
    const page = await more({ limit: Math.min(limit - items.length, 200), after });
    items.push(...page.items);
    after = page.next;
  }
  return { ...first, items, next: after };
}

/** All items of a list that is never very long. */
export async function every<T>(
  part: (how: { limit: number } | Rest) => Promise<Page<T>>,
): Promise<T[]> {
  return (await filled(await part({ limit: 200 }), 5_000, part)).items;
}
