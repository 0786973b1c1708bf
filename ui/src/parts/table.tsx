/**
 * A sortable table that renders one page of rows, so that ten thousand cost no more than a hundred.
 *
 * Rows keep their places while the pointer or the focus is in the table: what a person reads or is about to click does
 * not move. Actions of a row stay in sight: beside the scrolling columns, or below the row in a narrow window.
 */

import {
  type ColumnDef,
  flexRender,
  getCoreRowModel,
  getPaginationRowModel,
  getSortedRowModel,
  type Row,
  type RowData,
  type RowSelectionState,
  type SortingState,
  useReactTable,
} from "@tanstack/react-table";
import { Fragment, memo, type ReactNode, useEffect, useMemo, useState } from "react";
import { t } from "../language";
import { ROW } from "../shortcuts";
import { useWide } from "../theme";
import { count } from "../words";
import { Button } from "./basics";

declare module "@tanstack/react-table" {
  interface ColumnMeta<TData extends RowData, TValue> {
    numeric?: boolean;
    /** Hidden in windows narrower than this. */
    from?: Width;
    grow?: boolean;
  }
}

const WIDTHS = { sm: 640, md: 768, lg: 1024, xl: 1280, wide: 1500 };
type Width = keyof typeof WIDTHS;
const PAGE = 100;

/** A column of numbers: `show` writes one as text. */
export function numbers<T>(
  header: string,
  key: { [K in keyof T]-?: T[K] extends number | null | undefined ? K : never }[keyof T] & string,
  from?: Width,
  show: (value: number) => string = count,
): ColumnDef<T> {
  return {
    header,
    accessorFn: (row) => row[key],
    id: key,
    meta: { numeric: true, from },
    cell: ({ getValue }) => show(getValue<number>()),
  };
}

export function Table<T>({
  label,
  rows,
  columns,
  id,
  sort = [],
  sortable = true,
  order,
  empty,
  selection,
  actions,
  look,
}: {
  label: string;
  rows: T[];
  columns: ColumnDef<T>[];
  id: (row: T) => string;
  sort?: SortingState;
  sortable?: boolean;
  /** The order in which the server returns the rows, where it sorts them: the table does not. */
  order?: { sorting: SortingState; change: (sorting: SortingState) => void };
  empty: ReactNode;
  selection?: { chosen: RowSelectionState; choose: (chosen: RowSelectionState) => void };
  /** The buttons of a row. */
  actions?: (row: T) => ReactNode;
  /** Further classes of a row. */
  look?: (row: T) => string;
}) {
  const [sorting, setSorting] = useState<SortingState>(sort);
  const [pagination, setPagination] = useState({ pageIndex: 0, pageSize: PAGE });
  const [sm, md, lg, xl, wide] = [
    useWide(WIDTHS.sm),
    useWide(WIDTHS.md),
    useWide(WIDTHS.lg),
    useWide(WIDTHS.xl),
    useWide(WIDTHS.wide),
  ];
  const shown = useMemo(() => {
    const fits = { sm, md, lg, xl, wide };
    return columns.filter((column) => !column.meta?.from || fits[column.meta.from]);
  }, [columns, sm, md, lg, xl, wide]);
  const table = useReactTable({
    data: rows,
    columns: shown,
    state: { sorting: order?.sorting ?? sorting, pagination, rowSelection: selection?.chosen ?? {} },
    getRowId: id,
    enableSorting: sortable,
    enableRowSelection: Boolean(selection),
    autoResetPageIndex: false,
    manualSorting: Boolean(order),
    enableSortingRemoval: !order,
    onSortingChange: (change) => {
      if (!order) setSorting(change);
      else order.change(typeof change === "function" ? change(order.sorting) : change);
    },
    onPaginationChange: setPagination,
    onRowSelectionChange: (change) =>
      selection?.choose(typeof change === "function" ? change(selection.chosen) : change),
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    getPaginationRowModel: getPaginationRowModel(),
  });
  const pages = table.getPageCount();
  const reading = useReading();
  const model = useStill(table.getRowModel().rows, table.getPrePaginationRowModel().rowsById, {
    still: reading.still && !order, // what the server sorts is held still where it is asked for
    of: JSON.stringify([sorting, pagination.pageIndex]),
  });
  useEffect(() => {
    if (pages && pagination.pageIndex >= pages) setPagination((old) => ({ ...old, pageIndex: pages - 1 }));
  }, [pages, pagination.pageIndex]);
  if (rows.length === 0) return <>{empty}</>;
  const first = pagination.pageIndex * PAGE;
  return (
    <>
      <div className="relative overflow-x-auto" role="region" aria-label={label} tabIndex={0} {...reading.events}>
        <table className="w-full border-collapse text-sm">
          <thead>
            {table.getHeaderGroups().map((group) => (
              <tr key={group.id} className="border-b border-line bg-ground text-left text-xs text-muted">
                {group.headers.map((header) => {
                  const { meta } = header.column.columnDef;
                  const direction = header.column.getIsSorted();
                  const content = flexRender(header.column.columnDef.header, header.getContext());
                  return (
                    <th
                      key={header.id}
                      scope="col"
                      aria-sort={direction === "asc" ? "ascending" : direction === "desc" ? "descending" : undefined}
                      className={`px-2 py-2 font-medium sm:px-3 whitespace-nowrap ${meta?.numeric ? "text-right" : ""} ${meta?.grow ? "w-full" : ""}`}
                    >
                      {header.column.getCanSort() ? (
                        <button
                          type="button"
                          className={`inline-flex items-center align-middle font-medium hover:text-ink ${meta?.numeric ? "flex-row-reverse" : ""}`}
                          onClick={header.column.getToggleSortingHandler()}
                        >
                          {content}
                          <span aria-hidden="true" className="inline-block w-3 text-center">
                            {direction === "asc" ? "↑" : direction === "desc" ? "↓" : ""}
                          </span>
                        </button>
                      ) : (
                        <span className="align-middle">{content}</span>
                      )}
                    </th>
                  );
                })}
                {actions && md && (
                  <th scope="col" className="sticky right-0 bg-ground px-3">
                    <span className="sr-only">{t("Actions")}</span>
                  </th>
                )}
              </tr>
            ))}
          </thead>
          <tbody>
            {model.map((row) => (
              <Fragment key={row.id}>
                <Line
                  row={row}
                  original={row.original}
                  selected={row.getIsSelected()}
                  columns={shown}
                  look={look?.(row.original)}
                  joined={Boolean(actions) && !md}
                  actions={md ? actions : undefined}
                />
                {actions && !md && (
                  <tr className="border-b border-line">
                    <td colSpan={shown.length} className="px-2 pb-2">
                      <span className="flex flex-wrap gap-1.5">{actions(row.original)}</span>
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <div className="flex items-center gap-2 border-t border-line px-3 py-2 text-xs text-muted">
          <span>
            {t("{first}–{last} of {total}", {
              first: first + 1,
              last: Math.min(first + PAGE, rows.length),
              total: rows.length,
            })}
          </span>
          <Button small className="ml-auto" disabled={!table.getCanPreviousPage()} onClick={() => table.previousPage()}>
            {t("Previous page")}
          </Button>
          <Button small disabled={!table.getCanNextPage()} onClick={() => table.nextPage()}>
            {t("Next page")}
          </Button>
        </div>
      )}
    </>
  );
}

/** A row. It is rendered again only if what it shows has changed. */
const Line = memo(OneLine) as typeof OneLine;

function OneLine<T>({
  row,
  selected,
  look = "",
  joined,
  actions,
}: {
  row: Row<T>;
  original: T;
  selected: boolean;
  columns: ColumnDef<T>[];
  look?: string;
  /** Whether the actions are in a row of their own below this one. */
  joined: boolean;
  actions?: (row: T) => ReactNode;
}) {
  return (
    <tr
      {...ROW}
      className={`h-[2.3125rem] border-line last:border-0 hover:bg-sunken ${joined ? "" : "border-b"} ${selected ? "bg-accent-soft" : "bg-surface"} ${look}`}
    >
      {row.getVisibleCells().map((cell) => (
        <td
          key={cell.id}
          className={`px-2 py-1.5 align-middle sm:px-3 ${cell.column.columnDef.meta?.numeric ? "num" : ""} ${cell.column.columnDef.meta?.grow ? "max-w-0 min-w-40" : ""}`}
        >
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </td>
      ))}
      {actions && (
        <td className="sticky right-0 bg-inherit px-2 py-1.5 sm:px-3">
          <span className="flex justify-end gap-1.5">{actions(row.original)}</span>
        </td>
      )}
    </tr>
  );
}

/** Whether the pointer or the focus is in an element. */
function useReading() {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  return {
    still: pointed || focused,
    events: {
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocus: () => setFocused(true),
      onBlur: () => setFocused(false),
    },
  };
}

/** The rows in the order that they had when a person began to read; rows that are new since then are last. */
function useStill<T>(rows: Row<T>[], byId: Record<string, Row<T>>, { still, of }: { still: boolean; of: string }) {
  const [held, setHeld] = useState<{ of: string; ids: string[] } | null>(null);
  const ids = rows.map((row) => row.id);
  const current = still && held?.of === of ? held : null;
  useEffect(() => {
    if (!still && held) setHeld(null);
    if (still && !current) setHeld({ of, ids });
  });
  if (!current) return rows;
  const kept = new Set(current.ids);
  const before = current.ids.map((id) => byId[id]).filter((row) => row !== undefined);
  return [...before, ...rows.filter((row) => !kept.has(row.id))];
}
