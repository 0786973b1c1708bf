/** The layout of the graph: each worker is to the right of those it depends on. */

import type { Graph } from "../data/types";

export interface Spot {
  name: string;
  x: number;
  y: number;
}

export const BOX = { width: 168, height: 34, across: 72, down: 16, margin: 12 };
const SWEEPS = 4;

/** The workers that have at least one edge. */
export function whole(graph: Graph): Graph {
  const names = new Set(graph.edges.flatMap((edge) => [edge.from, edge.to]));
  return { nodes: graph.nodes.filter((node) => names.has(node.name)), edges: graph.edges };
}

export function neighbours(graph: Graph): Map<string, string[]> {
  const joined = new Map<string, string[]>();
  const add = (one: string, other: string) => {
    const known = joined.get(one);
    if (known) known.push(other);
    else joined.set(one, [other]);
  };
  for (const { from, to } of graph.edges) {
    add(from, to);
    add(to, from);
  }
  return joined;
}

/** One worker and those at most `hops` steps away, limited to the nearest ones. */
export function vicinity(graph: Graph, around: string, hops: number, most: number): Graph {
  const joined = neighbours(graph);
  const near = new Set([around]);
  let edge = [around];
  for (let hop = 0; hop < hops; hop++) {
    const next = new Set(edge.flatMap((name) => joined.get(name) ?? []).filter((name) => !near.has(name)));
    edge = [...next].slice(0, most - near.size);
    for (const name of edge) near.add(name);
  }
  return {
    nodes: graph.nodes.filter((node) => near.has(node.name)),
    edges: graph.edges.filter((one) => near.has(one.from) && near.has(one.to)),
  };
}

export function layout(graph: Graph): { spots: Map<string, Spot>; width: number; height: number } {
  const needs = new Map<string, string[]>(graph.nodes.map((node) => [node.name, []]));
  for (const edge of graph.edges) if (edge.kind === "depends_on") needs.get(edge.from)?.push(edge.to);
  const column = new Map<string, number>();
  const place = (name: string, seen: Set<string>): number => {
    const known = column.get(name);
    if (known !== undefined) return known;
    if (seen.has(name)) return 0;
    const before = (needs.get(name) ?? []).map((other) => place(other, new Set(seen).add(name)) + 1);
    const found = Math.max(0, ...before);
    column.set(name, found);
    return found;
  };
  for (const name of needs.keys()) place(name, new Set());
  const columns: string[][] = [];
  for (const [name, index] of column) {
    columns[index] ??= [];
    columns[index].push(name);
  }
  sweep(columns, graph);
  return spots(columns);
}

/** Moves each worker towards the middle of its neighbours, in a few passes. */
function sweep(columns: string[][], graph: Graph) {
  const joined = neighbours(graph);
  for (const column of columns) column.sort();
  for (let round = 0; round < SWEEPS; round++) {
    const row = new Map(columns.flatMap((column) => column.map((name, index) => [name, index] as const)));
    for (const column of columns) {
      const middle = (name: string) => {
        const others = joined.get(name) ?? [];
        return others.length ? others.reduce((sum, other) => sum + (row.get(other) ?? 0), 0) / others.length : 0;
      };
      column.sort((a, b) => middle(a) - middle(b) || a.localeCompare(b));
    }
  }
}

function spots(columns: string[][]) {
  const { width, height, across, down, margin } = BOX;
  const tallest = Math.max(0, ...columns.map((column) => column.length));
  const total = tallest * (height + down) - down;
  const found = new Map<string, Spot>();
  columns.forEach((column, index) => {
    const offset = (total - (column.length * (height + down) - down)) / 2;
    column.forEach((name, row) => {
      found.set(name, { name, x: margin + index * (width + across), y: margin + offset + row * (height + down) });
    });
  });
  return {
    spots: found,
    width: Math.max(0, columns.length * (width + across) - across) + 2 * margin + 40,
    height: Math.max(0, total) + 2 * margin + down,
  };
}
